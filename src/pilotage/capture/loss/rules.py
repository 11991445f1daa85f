"""The search for the loss that a rule asks for."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Protocol, Self

from pilotage.capture.loss.called import CalledLoss
from pilotage.capture.loss.dropped_work import DroppedWork
from pilotage.capture.loss.returned import ReturnedLoss
from pilotage.capture.loss.search import Loss
from pilotage.options.choices import LossRule
from pilotage.program.structure import Parsers


class LossSearch(Protocol):
    """Finds the loss of one run of forward, which has to run while the search is entered."""

    def __enter__(self) -> Self:
        """Start to look."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop looking."""
        ...

    def root(self, value: Any) -> Loss:
        """The loss to start backward from, given what forward returned; raises `LossError` unless there is exactly one."""
        ...

    def dropped_work(self, root: Loss, value: Any) -> DroppedWork | None:
        """An output that is computed from the root by work that does not reach the gradients."""
        ...


def search_by(rule: LossRule, parsers: Parsers) -> LossSearch:
    """A search that follows the rule."""
    match rule:
        case LossRule.RETURNED:
            return ReturnedLoss(parsers)
        case LossRule.CALLED:
            return CalledLoss(parsers)
