"""The loss that the backward pass starts from, and the search for it while forward runs.

Which value is the loss is decided by a `LossRule`: `returned_loss.py` looks at what forward returns, `called_loss.py`
at the loss functions that forward calls. Either way a user can decide it with `mark_loss`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar, Token
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge

from pilotage.errors import LossError
from pilotage.program.graphs.source_lines import current_line


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss, and the place in autograd's graph where it was computed.

    The place is noted at once: ``loss *= 5`` makes the tensor another result, but not the operation.
    """

    value: Tensor
    edge: GradientEdge | None
    """None where the loss depends on nothing that requires a gradient."""

    line: str | None = None
    """The user's line that computed or marked it, as ``file:line``."""

    @classmethod
    def of(cls, value: Tensor, line: str | None = None) -> Loss:
        """A loss that was computed just now."""
        return cls(value, get_gradient_edge(value) if value.requires_grad else None, line)


class Marks:
    """While entered, notes the losses that `mark_loss` is called with."""

    def __init__(self) -> None:
        self.found: list[Loss] = []
        self._tokens: list[Token[Marks | None]] = []

    def __enter__(self) -> Self:
        """Start noting."""
        self._tokens.append(_marks.set(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop noting."""
        _marks.reset(self._tokens.pop())


_marks: ContextVar[Marks | None] = ContextVar("pilotage_marked_losses", default=None)


def mark_loss(loss: Tensor) -> Tensor:
    """Say that this tensor is the loss to train on, whatever forward returns; use the result in its place."""
    marks = _marks.get()
    if marks is None:
        return loss
    if not isinstance(loss, Tensor):
        raise LossError(f"mark_loss takes the tensor to train on, not {type(loss).__name__}.")
    marked = loss.view_as(loss)
    marks.found.append(Loss.of(marked, current_line()))
    return marked


def differentiable(losses: Iterable[Loss]) -> list[Loss]:
    """The losses that depend on a parameter, each once."""
    trained = list({loss.edge: loss for loss in losses if loss.edge is not None}.values())
    if not trained:
        raise LossError(
            "The loss does not depend on any parameter that requires a gradient. "
            "Check requires_grad, detach() and torch.no_grad() on the way to it."
        )
    return trained


def final_losses(losses: list[Loss]) -> list[Loss]:
    """Those that no other loss was computed from."""
    return [loss for loss in losses if not any(_feeds(loss, other) for other in losses if other is not loss)]


def _feeds(loss: Loss, other: Loss) -> bool:
    """Whether the other loss was computed from this one."""
    if loss.edge is None or other.edge is None:
        return False
    target = loss.edge.node
    seen = set()
    waiting = [other.edge.node]
    while waiting:
        node = waiting.pop()
        if node is target:
            return True
        if node not in seen:
            seen.add(node)
            waiting.extend(above for above, _ in node.next_functions if above is not None)
    return False
