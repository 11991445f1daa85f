"""What becomes of a step that fails: it is forgiven and told, or explained and raised."""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.backends.walk import StepFailure
from pilotage.events import Listener, Warned
from pilotage.options.choices import NonFiniteLoss
from pilotage.runtime.diagnosis import explain, is_nonfinite_loss, late_notice
from pilotage.runtime.record import RunRecord


@dataclass(frozen=True)
class Failures:
    """Judges the failures of one executor, which it does not hold: executables hold this, and must not keep it alive."""

    nonfinite_loss: NonFiniteLoss
    record: RunRecord
    tell: Listener

    def forgive(self, failure: StepFailure, error: Exception) -> bool:
        """Whether training goes on, without looking at its losses any more; says so if it does."""
        if self.nonfinite_loss is not NonFiniteLoss.WARN or not is_nonfinite_loss(error):
            return False
        updates = self.record.updates
        if failure.is_late:
            self.tell(Warned(message=late_notice(failure, updates)))
        else:
            self.tell(Warned(message=f"{explain(failure, error, updates)} Training goes on, unchecked."))
        return True

    def explained(self, failure: StepFailure, *, trains: bool) -> BaseException:
        """What is raised for a failure; the updates of its call that were done count."""
        updates = self.record.updates
        self.record.updates += failure.step.iteration if trains else 0
        cause = failure.__cause__
        if not isinstance(cause, Exception):
            return failure
        return explain(failure, cause, updates) or cause
