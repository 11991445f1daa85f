"""What becomes of a step that fails: it is forgiven and told, or explained and raised."""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.events import Listener, Warned
from pilotage.execution.spread_state import ProgramState
from pilotage.execution.walk import StepFailure
from pilotage.options.choices import NonFiniteLoss
from pilotage.runtime.diagnosis import explain, is_nonfinite_loss, late_notice
from pilotage.runtime.record import RunRecord

_TORN = (
    "The call was broken off in the middle of an update. The module shows its weights as they were when they were last read, or "
    "sent to the device. Restore a checkpoint before you train on."
)
"""What is said where the device's weights are not those of any step."""


@dataclass(frozen=True)
class Failures:
    """Judges the failures of one executor, which it does not hold: executables hold this, and must not keep it alive."""

    nonfinite_loss: NonFiniteLoss
    record: RunRecord
    tell: Listener

    def may_continue(self, failure: StepFailure, error: Exception) -> bool:
        """Whether training goes on, without looking at its losses any more; says so if it does."""
        if self.nonfinite_loss is not NonFiniteLoss.WARN or not is_nonfinite_loss(error):
            return False
        updates = self.record.updates
        if failure.is_late:
            self.tell(Warned(message=late_notice(failure, updates)))
        else:
            self.tell(Warned(message=f"{explain(failure, error, updates)} Training goes on, unchecked."))
        return True

    def is_torn_by(self, error: BaseException, state: ProgramState) -> bool:
        """Whether a failed call left an update half done; says so then, and counts the updates that are whole."""
        if not isinstance(error, StepFailure):
            self.record.updates += state.updates_of_call
        state.updates_of_call = 0
        if state.torn:
            self.tell(Warned(message=_TORN))
        return bool(state.torn)

    def explained(self, failure: StepFailure, *, trains: bool) -> BaseException:
        """What is raised for a failure; the updates of its call that were done count."""
        updates = self.record.updates
        self.record.updates += failure.step.iteration if trains else 0
        cause = failure.__cause__
        if not isinstance(cause, Exception):
            return failure
        return explain(failure, cause, updates) or cause
