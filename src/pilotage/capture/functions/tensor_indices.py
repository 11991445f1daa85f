"""Indexing with a scalar tensor: ``x[i]`` where ``i`` has no dimension.

torch turns such an index into a Python number and returns a view. A captured program does not know the number, so it
gathers and scatters instead, and what it reads is a copy. Code that would notice the difference is refused: writing
into the copy, or writing into the tensor and then using the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pilotage.capture.functions.masked_writes import chosen_by_mask
from pilotage.capture.functions.writes import written
from pilotage.errors import CaptureError
from pilotage.program.graphs.source_lines import called_from
from pilotage.torch_private import (
    DataDependentOutputException,
    TorchDispatchMode,
    schema_of,
    storage_address,
    tree_leaves,
)


def get_item(copies: IndexCopies, x: Tensor, index: Any) -> Any:
    """``x[index]``, where indices may be scalar tensors."""
    try:
        return x[index]
    except DataDependentOutputException:
        items = _items(index)
        if not any(map(_is_position, items)):
            raise
    rest = x.dim() - sum(map(_dimensions, items))
    result, kept, dim = x, [], 0
    for item in items:
        if _is_position(item):
            result = _picked(result, dim, item)
        else:
            kept.append(item)
            dim += rest if item is Ellipsis else _dimensions(item)
    result = result[tuple(kept)] if kept else result
    copies.note(result, x)
    return result


def set_item(copies: IndexCopies, x: Tensor, index: Any, value: Any) -> None:
    """``x[index] = value``, where indices may be scalar tensors."""
    copies.written_back(x, value)
    chosen = chosen_by_mask(x, index, value)
    if chosen is not None:
        x.copy_(chosen)
        return
    try:
        x[index] = value
        return
    except DataDependentOutputException:
        items = _items(index)
        if not any(map(_is_position, items)) or not all(_is_position(item) or _is_basic(item) for item in items):
            raise
    rest = x.dim() - sum(map(_dimensions, items))
    view = x[tuple(slice(None) if _is_position(item) else item for item in items)]
    places, dim = [], 0
    for item in items:
        if _is_position(item):
            places.append(dim)
        dim += rest if item is Ellipsis else 0 if isinstance(item, int) else 1
    given = value if isinstance(value, Tensor) else torch.tensor(value, device=x.device)
    positions = tuple(item for item in items if _is_position(item))
    view.movedim(places, list(range(len(places)))).index_put_(positions, given.to(x.dtype))


def select(copies: IndexCopies, input: Tensor, dim: Any, index: Any) -> Tensor:
    """``torch.select`` with an index that may be a tensor."""
    if not isinstance(index, Tensor):
        return torch.select(input, dim, index)
    result = _picked(input, dim, index)
    copies.note(result, input)
    return result


def narrow(copies: IndexCopies, input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """``torch.narrow`` with a start that may be a tensor."""
    if not isinstance(start, Tensor):
        return torch.narrow(input, dim, start, length)
    first = torch.where(start < 0, start + input.shape[dim], start)
    result = input.index_select(dim, first + torch.arange(length, device=input.device))
    copies.note(result, input)
    return result


POSITION_FORMS: dict[Callable[..., Any], Callable[..., Any]] = {
    Tensor.__getitem__: get_item,
    Tensor.__setitem__: set_item,
    torch.select: select,
    Tensor.select: select,
    torch.narrow: narrow,
    Tensor.narrow: narrow,
}


@dataclass(frozen=True, slots=True)
class _IndexCopy:
    """A copy in place of a view."""

    tensor: Tensor
    original: Tensor
    version: int
    """The version of the original when it was copied."""


class IndexCopies(TorchDispatchMode):
    """While active, refuses operations that would notice that a view has become a copy."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._copies: dict[int, _IndexCopy] = {}
        self._lost: dict[int, str] = {}
        """By original: the line that wrote into a copy. The write must reach the original before it is used again."""

    def note(self, copy: Tensor, original: Tensor) -> None:
        """Remember a copy."""
        self._copies[_storage(copy)] = _IndexCopy(copy, original, original._version)

    def written_back(self, original: Tensor, value: Any) -> None:
        """Note that a copy is written back into the original, as ``x[i] += y`` does."""
        known = self._known(value)
        if known is not None and known.original is original:
            self._lost.pop(_storage(original), None)

    def refuse_lost_writes(self) -> None:
        """Raise if a copy was written into but never written back."""
        for where in self._lost.values():
            raise _lost_write(where)

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation."""
        if self._copies:
            self._check(func, args, kwargs or {})
        return func(*args, **(kwargs or {}))

    def _check(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for used in tree_leaves((args, kwargs)):
            known = self._known(used)
            if known is not None and known.original._version != known.version:
                raise CaptureError(
                    "forward reads x[i], where i is a tensor, then writes into x, and then uses what it read. In a "
                    "static program x[i] is a copy, so it does not show the write. Read it again after the write, or "
                    f"use x[i].clone() to keep the old value.{called_from()}"
                )
            if known is None and isinstance(used, Tensor) and _storage(used) in self._lost:
                raise _lost_write(self._lost[_storage(used)])
        if schema_of(func).is_mutable:
            for known in filter(None, map(self._known, written(func, args, kwargs))):
                self._lost[_storage(known.original)] = called_from()

    def _known(self, value: Any) -> _IndexCopy | None:
        return self._copies.get(_storage(value)) if isinstance(value, Tensor) else None


def _lost_write(where: str) -> CaptureError:
    return CaptureError(
        "forward writes into x[i], where i is a tensor, as in x[i].add_(y). In a static program x[i] is a copy. "
        f"Write x[i] = x[i] + y instead.{where}"
    )


def _storage(tensor: Tensor) -> int:
    return storage_address(tensor.untyped_storage()) if tensor.layout is torch.strided else 0


def _picked(x: Tensor, dim: int, position: Tensor) -> Tensor:
    picked: Tensor = torch.ops.aten.index.Tensor(x.movedim(dim, 0), [position])
    return picked


def _items(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _is_position(item: Any) -> bool:
    is_tensor = isinstance(item, Tensor) and item.dim() == 0
    return is_tensor and not item.is_floating_point() and not item.is_complex() and item.dtype is not torch.bool


def _is_basic(item: Any) -> bool:
    return item is None or item is Ellipsis or isinstance(item, slice) or _is_number(item)


def _is_number(item: Any) -> bool:
    return isinstance(item, int) and not isinstance(item, bool)


def _dimensions(item: Any) -> int:
    """How many dimensions of the tensor an index item consumes."""
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    if isinstance(item, Tensor) and item.dtype is torch.bool:
        return item.dim()
    return 1
