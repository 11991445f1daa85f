"""Functions captured as HPU graphs, for inference and training, with their own input and output tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from habana_frameworks.torch.hpu.graphs.recording import HPUGraph, graph
from pilotage.engine import tree_flatten, tree_map_only, tree_unflatten


class CapturedInference:
    """A function as one graph, without gradients."""

    def __init__(self, function: Callable[..., Any], leaves: Sequence[Any], shape: Any) -> None:
        self._inputs = [each.detach().clone() if isinstance(each, Tensor) else each for each in leaves]
        self._graph = HPUGraph()
        args, kwargs = tree_unflatten(self._inputs, shape)
        with torch.no_grad(), graph(self._graph, dry_run=True):
            self._outputs = function(*args, **kwargs)

    def __call__(self, leaves: Sequence[Any]) -> Any:
        """Run it on other inputs of the same signature, and return copies of the outputs."""
        _fill(self._inputs, leaves)
        self._graph.replay()
        return tree_map_only(Tensor, torch.clone, self._outputs)


class CapturedTraining:
    """A function as two graphs: forward, and the gradients of inputs and parameters."""

    def __init__(
        self,
        function: Callable[..., Any],
        parameters: Sequence[Tensor],
        leaves: Sequence[Any],
        shape: Any,
        *,
        allow_unused_input: bool = False,
    ) -> None:
        self._parameters = [each for each in parameters if each.requires_grad]
        self._inputs = [_place(each) if isinstance(each, Tensor) else each for each in leaves]
        args, kwargs = tree_unflatten(self._inputs, shape)
        self._forward, self._backward = HPUGraph(), HPUGraph()
        with torch.enable_grad(), graph(self._forward, dry_run=True):
            self._outputs, self._shape = tree_flatten(function(*args, **kwargs))
        self.positions = [number for number, each in enumerate(self._outputs) if _is_differentiable(each)]
        """Which outputs have gradients."""
        self._capture_backward(allow_unused_input)
        self.turn = 0
        """Number of forward runs; each overwrites what the previous one kept for backward."""

    def _capture_backward(self, allow_unused_input: bool) -> None:
        self._heads = [torch.zeros_like(self._outputs[position]) for position in self.positions]
        tensors = [each for each in self._inputs if isinstance(each, Tensor)]
        wanted = [each for each in (*tensors, *self._parameters) if each.requires_grad]
        found: Sequence[Tensor | None] = ()
        if self._heads and wanted:
            ends = [self._outputs[position] for position in self.positions]
            with graph(self._backward, dry_run=True):
                found = torch.autograd.grad(ends, wanted, self._heads, allow_unused=allow_unused_input)
        gradients = iter(found)
        self._gradients = [
            next(gradients, None) if each.requires_grad else None for each in (*tensors, *self._parameters)
        ]

    def __call__(self, leaves: Sequence[Any]) -> Any:
        """Run it on other inputs of the same signature, differentiably in inputs and parameters."""
        tensors = [each for each in leaves if isinstance(each, Tensor)]
        made = iter(_Replay.apply(self, *tensors, *self._parameters))  # type: ignore[no-untyped-call]
        values = [next(made) if isinstance(each, Tensor) else each for each in self._outputs]
        return tree_unflatten(values, self._shape)

    def run_forward(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Replay forward on these inputs and return copies of the outputs."""
        places = [each for each in self._inputs if isinstance(each, Tensor)]
        _fill(places, tensors[: len(places)])
        self._forward.replay()
        self.turn += 1
        return tuple(each.detach().clone() for each in self._outputs if isinstance(each, Tensor))

    def run_backward(self, heads: Sequence[Tensor], turn: int) -> list[Tensor | None]:
        """Replay backward from the gradients of the differentiable outputs."""
        if turn != self.turn:
            raise RuntimeError(
                "backward() was called for a run of an HPU graph whose tensors a later run has overwritten. Call "
                "backward() before the next forward, or use separate graphs for the two runs."
            )
        _fill(self._heads, heads)
        if self._heads:
            self._backward.replay()
        return [None if each is None else each.detach().clone() for each in self._gradients]


class _Replay(torch.autograd.Function):
    """Forward and backward of a captured function, as autograd sees them."""

    @staticmethod
    def forward(ctx: Any, captured: CapturedTraining, *tensors: Tensor) -> tuple[Tensor, ...]:
        outputs = captured.run_forward(tensors)
        kept = [each for each in captured._outputs if isinstance(each, Tensor)]
        ctx.mark_non_differentiable(
            *(made for made, each in zip(outputs, kept, strict=True) if not _is_differentiable(each))
        )
        ctx.is_head = [_is_differentiable(each) for each in kept]
        ctx.captured, ctx.turn = captured, captured.turn
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        heads = [each for each, is_head in zip(gradients, ctx.is_head, strict=True) if is_head]
        return (None, *ctx.captured.run_backward(heads, ctx.turn))


def _place(tensor: Tensor) -> Tensor:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def _fill(places: Sequence[Any], values: Sequence[Any]) -> None:
    for place, value in zip(places, values, strict=True):
        if isinstance(place, Tensor):
            place.detach().copy_(value.detach())


def _is_differentiable(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad
