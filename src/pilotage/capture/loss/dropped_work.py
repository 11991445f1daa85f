"""Detects outputs that forward computes from the loss, although backward starts at the loss itself.

Such work does not affect the gradients. A user who returns ``5 * loss`` should know this. Reshaping, casting or summing
the loss, or returning it beside a metric, changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from torch import Tensor
from torch.autograd.graph import Node

from pilotage.capture.loss.search import Loss
from pilotage.torch_private import SAVED_ALPHA


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that forward ran after a loss."""

    line: str | None
    """The user's line, as ``file:line``."""

    elements: int
    """The number of elements of its result."""

    is_neutral: bool = False
    """Whether it leaves its argument unchanged, such as a product with 1."""


@dataclass(frozen=True, slots=True)
class DroppedWork:
    """An output computed from the loss by work that does not affect the gradients."""

    output: str
    """The output as the user would write it, such as ``output[1]``."""

    loss: str | None
    """The user's line of the loss, as ``file:line``."""

    operation: str | None
    """The line of the first operation that does not affect the gradients."""


class _Kind(Enum):
    """How a value relates to the loss it was computed from."""

    WHOLE = "whole"
    """Each element of the loss counts once: training on the sum of the value is training on the loss."""
    PARTS = "parts"
    """Some of its elements, or copies of them, unchanged."""
    WORK = "work"
    """Something else was computed."""


@dataclass(frozen=True, slots=True)
class _Trail:
    kind: _Kind
    line: str | None = None
    """The line of the first work."""


_SAME = frozenset(
    {
        "Alias",
        "Clone",
        "Copy",
        "LiftFresh",
        "Permute",
        "ReshapeAlias",
        "Squeeze",
        "T",
        "ToCopy",
        "Transpose",
        "UnsafeView",
        "Unsqueeze",
        "View",
    }
)
"""Autograd operations that keep each element once."""

_SELECTING = frozenset(
    {
        "AsStrided",
        "Cat",
        "Diagonal",
        "Expand",
        "Select",
        "Slice",
        "Split",
        "SplitWithSizes",
        "Stack",
        "Unbind",
        "Unfold",
    }
)
"""Autograd operations that select, repeat or collect elements."""


def dropped_work(root: Loss, outputs: Mapping[str, Tensor], operations: Mapping[Node, Operation]) -> DroppedWork | None:
    """The first output computed from the root by more than copying, or None."""
    if root.edge is None:
        return None
    trails = _Trails(root.edge.node, root.value.numel(), operations)
    for path, tensor in outputs.items():
        trail = None if tensor.grad_fn is None else trails.of(tensor.grad_fn)
        if trail is not None and trail.kind is _Kind.WORK:
            return DroppedWork(output=path, loss=root.line, operation=trail.line)
    return None


class _Trails:
    """Follows values back to the loss through autograd's graph."""

    def __init__(self, root: Node, elements: int, operations: Mapping[Node, Operation]) -> None:
        self._elements = elements
        self._operations = operations
        self._known: dict[Node, _Trail | None] = {root: _Trail(_Kind.WHOLE)}

    def of(self, value: Node) -> _Trail | None:
        """How a value relates to the loss; None if it does not depend on it."""
        waiting = [value]
        while waiting:
            node = waiting[-1]
            above = [each for each in _arguments(node) if each not in self._known]
            if above:
                waiting.extend(above)
                continue
            waiting.pop()
            if node not in self._known:
                self._known[node] = self._after(node)
        return self._known[value]

    def _after(self, node: Node) -> _Trail | None:
        given = [None if above is None else self._known[above] for above, _ in node.next_functions]
        trails = [trail for trail in given if trail is not None]
        if not trails:
            return None
        operation = self._operations.get(node)
        line = None if operation is None else operation.line
        work = next((trail for trail in trails if trail.kind is _Kind.WORK), None)
        if work is not None:
            return work if work.line is not None else _Trail(_Kind.WORK, line)
        kind = self._kind_after(node, given, operation)
        return _Trail(kind, line) if kind is _Kind.WORK else _Trail(kind)

    def _kind_after(self, node: Node, given: list[_Trail | None], operation: Operation | None) -> _Kind:
        name = node.name().rpartition("::")[2].rstrip("0123456789").removesuffix("Backward")
        if name in _SELECTING:
            return _Kind.PARTS
        if name == "CopySlices":
            # The first argument is the target: a table of results that stores the loss, or the loss itself.
            changed = given[0]
            return _Kind.WORK if changed is not None and changed.kind is _Kind.WHOLE else _Kind.PARTS
        kind = next(trail.kind for trail in given if trail is not None)
        if name in _SAME or (operation is not None and operation.is_neutral):
            return kind
        keeps_all = kind is _Kind.WHOLE and self._has_gradient_one(name, node, given, operation)
        return _Kind.WHOLE if keeps_all else _Kind.WORK

    def _has_gradient_one(self, name: str, node: Node, given: list[_Trail | None], operation: Operation | None) -> bool:
        """Whether an operation has gradient 1 for each element of the loss."""
        match name:
            case "Sum":
                return True
            case "Mean":
                return self._elements == 1
            case "Add" | "Sub":
                is_only_variable = len(list(_arguments(node))) == 1
                is_broadcast = operation is None or operation.elements not in (1, self._elements)
                # The second summand has a factor: alpha, or -1 in a difference.
                is_plain = given[0] is not None or (name == "Add" and getattr(node, SAVED_ALPHA, None) == 1)
                return is_only_variable and is_plain and not is_broadcast
            case _:
                return False


def _arguments(node: Node) -> Iterator[Node]:
    return (above for above, _ in node.next_functions if above is not None)
