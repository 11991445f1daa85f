"""The loss that backward starts from, and the search for it while forward runs.

A `LossRule` decides which value is the loss: `returned.py` looks at what forward returns, `called.py` at the loss
functions that forward calls. Either way, a user can choose it with `mark_loss`.
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
    """A loss and its edge in autograd's graph.

    The edge is recorded at once: a later ``loss *= 5`` changes the tensor, but not the operation.
    """

    value: Tensor
    edge: GradientEdge | None
    """None if the loss depends on nothing that requires a gradient."""

    line: str | None = None
    """The user's line that computed or marked it, as ``file:line``."""

    @classmethod
    def of(cls, value: Tensor, line: str | None = None) -> Loss:
        """The loss that was just computed."""
        return cls(value, get_gradient_edge(value) if value.requires_grad else None, line)


class Marks:
    """While entered, records the losses passed to `mark_loss`."""

    def __init__(self) -> None:
        self.found: list[Loss] = []
        self._tokens: list[Token[Marks | None]] = []

    @property
    def has_marks(self) -> bool:
        """Whether forward has marked a loss."""
        return bool(self.found)

    def forget(self) -> None:
        """Forget the losses, which keep autograd's graph and its leaves alive."""
        self.found.clear()

    def __enter__(self) -> Self:
        """Start recording."""
        self._tokens.append(_marks.set(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop recording."""
        _marks.reset(self._tokens.pop())


_marks: ContextVar[Marks | None] = ContextVar("pilotage_marked_losses", default=None)


def mark_loss(loss: Tensor) -> Tensor:
    """Mark a tensor as the loss to train on, whatever forward returns; use the returned tensor in its place."""
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
    """The losses that feed no other loss."""
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
