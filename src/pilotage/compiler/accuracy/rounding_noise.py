"""Runs a graph with rounding noise in each result, to find out how sensitive it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Interpreter, Node

from pilotage.torch_private import OpOverload, schema_of, storage_address, tree_leaves, tree_map_only

_TF32 = 2.0**-10


def rounded_differently(
    graph: GraphModule, seed: int, *, tf32: bool, amplitude: float = 1.0
) -> Callable[..., list[Tensor]]:
    """A function that runs the graph and changes each result by up to half a unit in the last place.

    With ``tf32``, float32 results are changed in the last place of TF32. The noise is multiplied by ``amplitude``.
    """

    def call(*arguments: Tensor) -> list[Tensor]:
        return list(_NoisyInterpreter(graph, seed, amplitude, tf32=tf32).run(*arguments))

    return call


class _NoisyInterpreter(Interpreter):
    def __init__(self, graph: GraphModule, seed: int, amplitude: float, *, tf32: bool) -> None:
        super().__init__(graph)
        self._seed, self._amplitude, self._tf32 = seed, amplitude, tf32
        self._generators: dict[torch.device, torch.Generator] = {}

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        if not isinstance(n.target, OpOverload) or schema_of(n.target).is_mutable:
            return result
        arguments, _ = self.fetch_args_kwargs_from_env(n)
        taken = {_memory(each) for each in tree_leaves(arguments) if isinstance(each, Tensor)}
        return tree_map_only(Tensor, lambda each: each if _memory(each) in taken else self._add_noise(each), result)

    def _add_noise(self, tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point() or not tensor.numel():
            return tensor
        digit = _TF32 if self._tf32 and tensor.dtype == torch.float32 else torch.finfo(tensor.dtype).eps
        # Half a unit in the last place either way, computed in a wider type and then rounded.
        wide = torch.promote_types(tensor.dtype, torch.float32)
        reach = self._amplitude * digit / 2
        factor = torch.empty_like(tensor, dtype=wide)
        factor.uniform_(1 - reach, 1 + reach, generator=self._generator(tensor.device))
        return (tensor * factor).to(tensor.dtype)

    def _generator(self, device: torch.device) -> torch.Generator:
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[device]


def _memory(tensor: Tensor) -> int:
    return int(storage_address(tensor.untyped_storage()))
