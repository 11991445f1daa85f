"""What an item that travels between processes is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor

from pilotage.errors import InputError


class Structure(Protocol):
    """Takes items apart into tensors in one process and puts them together in another; it has to be picklable."""

    def flatten(self, item: Any) -> tuple[Any, list[Tensor]]:
        """What is left of the item without its tensors, and its tensors in a fixed order.

        What is left has to compare equal for items that may follow each other.
        """

    def rebuild(self, skeleton: Any, tensors: list[Tensor]) -> Any:
        """An item of the first one's skeleton around these tensors."""


@dataclass(frozen=True, slots=True)
class FlatSkeleton:
    """A tensor alone, a list of tensors, or a dictionary of tensors."""

    kind: str
    names: frozenset[str] = frozenset()
    order: tuple[str, ...] = field(default=(), compare=False)


class FlatStructure:
    """Items that are a tensor, a sequence of tensors (it arrives as a list) or a dictionary from str to tensor."""

    def flatten(self, item: Any) -> tuple[FlatSkeleton, list[Tensor]]:
        """Take a flat item apart."""
        if isinstance(item, Tensor):
            return FlatSkeleton("tensor"), [item]
        if isinstance(item, Mapping) and all(isinstance(name, str) for name in item):
            skeleton = FlatSkeleton("dictionary", frozenset(item), tuple(item))
            return skeleton, _only_tensors([item[name] for name in sorted(item)], item)
        if isinstance(item, Sequence) and not isinstance(item, str | bytes):
            return FlatSkeleton("list"), _only_tensors(list(item), item)
        raise _unsupported(item)

    def rebuild(self, skeleton: FlatSkeleton, tensors: list[Tensor]) -> Any:
        """Put a flat item together."""
        if skeleton.kind == "tensor":
            return tensors[0]
        if skeleton.kind == "dictionary":
            by_name = dict(zip(sorted(skeleton.names), tensors, strict=True))
            return {name: by_name[name] for name in skeleton.order}
        return tensors


def _only_tensors(members: list[Any], item: Any) -> list[Tensor]:
    if not members or not all(isinstance(member, Tensor) for member in members):
        raise _unsupported(item)
    return members


def _unsupported(item: object) -> InputError:
    if isinstance(item, Mapping):
        held = {name: type(value).__name__ for name, value in item.items()}
    elif isinstance(item, Sequence) and not isinstance(item, str | bytes):
        held = [type(member).__name__ for member in item]  # type: ignore[assignment]
    else:
        held = {}
    return InputError(
        f"An item has to be a tensor, a flat sequence of tensors or a dict from str to tensor, "
        f"not {type(item).__name__}{f' of {held}' if held else ''}. Have collate_fn, or the iterable itself, return one."
    )
