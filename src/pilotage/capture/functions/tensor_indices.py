"""Single positions in a tensor that are themselves tensors: ``x[i]`` where ``i`` has no dimension.

torch turns such a position into a Python number and returns a view. A captured program does not know the number, so it
gathers and scatters instead. What it reads is then a copy: to write into it, or to write into the tensor and go on with
what was read before, would not do what it does in eager PyTorch, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from pilotage.capture.functions.masked_writes import chosen_by_mask
from pilotage.capture.functions.writes import written
from pilotage.errors import CaptureError
from pilotage.program.graphs.source_lines import called_from


def get_item(copies: IndexCopies, x: Tensor, index: Any) -> Any:
    """``x[index]``, where positions may be tensors."""
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
    """``x[index] = value``, where positions may be tensors."""
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
    """One position of a dimension, which may be a tensor."""
    if not isinstance(index, Tensor):
        return torch.select(input, dim, index)
    result = _picked(input, dim, index)
    copies.note(result, input)
    return result


def narrow(copies: IndexCopies, input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """A part of fixed length of a dimension, from a position that may be a tensor."""
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
    """A copy that stands for a view."""

    tensor: Tensor
    original: Tensor
    version: int
    """Of the original when it was copied."""


class IndexCopies(TorchDispatchMode):
    """While active, refuses what would make a difference between a view and the copy that stands for it."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._copies: dict[int, _IndexCopy] = {}
        self._lost: dict[int, str] = {}
        """Where a copy was written into, by the original: what has to reach the original before it is used again."""

    def note(self, copy: Tensor, original: Tensor) -> None:
        """Remember a copy."""
        self._copies[_storage(copy)] = _IndexCopy(copy, original, original._version)

    def written_back(self, original: Tensor, value: Any) -> None:
        """A value is about to be put into the original, as ``x[i] += y`` does with what it read."""
        known = self._known(value)
        if known is not None and known.original is original:
            self._lost.pop(_storage(original), None)

    def refuse_lost_writes(self) -> None:
        """Raise if a copy was written into, and the original never got to see it."""
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
                    "forward reads x[i], where i is a tensor, then writes into x, and then uses what it read. In a static "
                    "program x[i] is a copy and does not show what was written. Read it again after the write, or take "
                    f"x[i].clone() if the old value is meant.{called_from()}"
                )
            if known is None and isinstance(used, Tensor) and _storage(used) in self._lost:
                raise _lost_write(self._lost[_storage(used)])
        if func._schema.is_mutable:
            for known in filter(None, map(self._known, written(func, args, kwargs))):
                self._lost[_storage(known.original)] = called_from()

    def _known(self, value: Any) -> _IndexCopy | None:
        return self._copies.get(_storage(value)) if isinstance(value, Tensor) else None


def _lost_write(where: str) -> CaptureError:
    return CaptureError(
        "forward writes into a part of a tensor whose position is a tensor too, as in x[i].add_(y), and in a static program "
        f"that part is a copy. Write x[i] = x[i] + y instead.{where}"
    )


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata if tensor.layout is torch.strided else 0


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
    """How many dimensions of the tensor an item of an index speaks of."""
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    if isinstance(item, Tensor) and item.dtype is torch.bool:
        return item.dim()
    return 1
