"""Eager PyTorch with other rounding, to find out how much of a difference rounding explains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pilotage.torch_private import TorchDispatchMode, schema_of, storage_address, tree_leaves, tree_map_only

_NARROW = torch.float32


class OtherRounding(TorchDispatchMode):
    """While active, changes each result by up to one unit in the last place."""

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operation, and round its new results differently."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if schema_of(func).is_mutable:
            return result
        taken = {_memory(each) for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)}
        return tree_map_only(Tensor, lambda each: each if _memory(each) in taken else self._changed(each), result)

    def _changed(self, tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point() or not tensor.numel():
            return tensor
        digit = torch.finfo(tensor.dtype).eps
        # In a wider type: near 1, the type itself has only two neighbours.
        wide = torch.float64 if tensor.dtype.itemsize > 2 else torch.float32
        factor = torch.empty_like(tensor, dtype=wide)
        factor.uniform_(1 - digit, 1 + digit, generator=self._generator(tensor.device))
        return (tensor.to(wide) * factor).to(tensor.dtype)

    def _generator(self, device: torch.device) -> torch.Generator:
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[device]


class InFloat64(TorchDispatchMode):
    """While active, every floating-point result is float64, and random numbers are those that float32 would get.

    It applies to this thread only: torch's default type belongs to all threads.
    """

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operation; one that draws random numbers runs in float32."""
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags:
            if getattr(kwargs.get("dtype"), "is_floating_point", False):
                kwargs = {**kwargs, "dtype": torch.float64}
            result = func(*args, **kwargs)
            return result if schema_of(func).is_mutable else tree_map_only(Tensor, _widened, result)
        narrowed: dict[int, tuple[Tensor, Tensor]] = {}

        def narrow(tensor: Tensor) -> Tensor:
            if tensor.dtype != torch.float64:
                return tensor
            found = tensor.to(_NARROW)
            narrowed[id(found)] = (found, tensor)
            return found

        args, kwargs = tree_map_only(Tensor, narrow, (args, kwargs))
        result = func(*args, **kwargs)
        if schema_of(func).is_mutable:
            for found, original in narrowed.values():
                original.copy_(found)
        return tree_map_only(
            Tensor, lambda each: narrowed[id(each)][1] if id(each) in narrowed else _widened(each), result
        )


def _widened(tensor: Tensor) -> Tensor:
    return tensor.double() if tensor.is_floating_point() and tensor.dtype != torch.float64 else tensor


def _memory(tensor: Tensor) -> int:
    return int(storage_address(tensor.untyped_storage()))
