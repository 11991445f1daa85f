"""Warns of work after the loss, which PopTorch's rule for the loss leaves out of training."""

from __future__ import annotations

from pilotage.engine import DroppedWork, Program, findings_of
from poptorch._logging import logger

__all__ = ["LossAdvice"]


_NOTHING_TRAINED = (
    "The loss does not depend on any parameter that requires a gradient, so training changes none. Check "
    "requires_grad, "
    "detach() and torch.no_grad() on the way to it."
)


class LossAdvice:
    """Warns once per model that training ignores work after the loss, or that it changes no parameter."""

    def __init__(self) -> None:
        self._has_warned = False

    def on(self, program: Program) -> None:
        """Check a program; in the eager tier, once it has run."""
        findings = next(findings_of(program), None)
        if findings is None:
            return
        if program.trains and not self._has_warned and set(program.layout.trained) <= set(findings.without_gradient):
            self._has_warned = True
            logger.warning(_NOTHING_TRAINED)
        dropped = findings.dropped_work
        if dropped is not None and not self._has_warned:
            self._has_warned = True
            logger.warning(_text(dropped))


def _text(dropped: DroppedWork) -> str:
    loss = f" computed at {dropped.loss}" if dropped.loss else ""
    operation = f" at {dropped.operation}" if dropped.operation else ""
    return (
        f"The model is trained on the loss{loss}, and not on the value that is computed from it{operation} and "
        "returned as "
        f"{dropped.output}: PopTorch starts backward at the loss operation, so work after it does not change the "
        "gradients. "
        'To train on the final value, wrap it: poptorch.identity_loss(final, reduction="none"). Otherwise return the '
        "loss "
        "itself, or detach() what is computed from it."
    )
