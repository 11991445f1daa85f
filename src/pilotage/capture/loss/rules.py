"""Chooses how to search for the loss."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Protocol, Self

from pilotage.capture.loss.called import CalledLossRule
from pilotage.capture.loss.dropped_work import DroppedWork
from pilotage.capture.loss.returned import ReturnedLossRule
from pilotage.capture.loss.search import Loss
from pilotage.options.choices import LossRule
from pilotage.program.structure import Parsers


class LossSearch(Protocol):
    """Finds the loss of one run of forward; enter it before running forward."""

    def __enter__(self) -> Self:
        """Start the search."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the search."""
        ...

    @property
    def has_marks(self) -> bool:
        """Whether forward has marked a loss."""
        ...

    def forget(self) -> None:
        """Forget the losses, which keep autograd's graph and its leaves alive."""
        ...

    def root(self, value: Any) -> Loss:
        """The loss to start backward from, given the outputs of forward; raises `LossError` unless there is one."""
        ...

    def dropped_work(self, root: Loss, value: Any) -> DroppedWork | None:
        """An output computed from the root by work that does not affect the gradients."""
        ...


def search_by(rule: LossRule, parsers: Parsers) -> LossSearch:
    """A search by this rule."""
    match rule:
        case LossRule.RETURNED:
            return ReturnedLossRule(parsers)
        case LossRule.CALLED:
            return CalledLossRule(parsers)
