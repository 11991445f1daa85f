"""The wording of each target for the same constructs."""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.porting.target import Target

__all__ = ["PILOTAGE", "POPTORCH", "PROGRAMS", "Dialect", "dialect_of"]

PROGRAMS = frozenset({Target.POPTORCH, Target.POPDIST, Target.PILOTAGE})
"""The targets that run a training step as one call."""
POPTORCH = frozenset({Target.POPTORCH, Target.POPDIST})
PILOTAGE = frozenset({Target.PILOTAGE})


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialect:
    """The code of one target."""

    package: str
    mark: str
    """Marks a loss, with the loss as ``{}``."""

    inference: str
    """Wraps a model for evaluation, with the model as ``{}``."""

    detach: str
    """Frees the device."""


_POPTORCH = Dialect(
    package="poptorch",
    mark='poptorch.identity_loss({}, reduction="none")',
    inference="poptorch.inferenceModel({})",
    detach="detachFromDevice",
)
_PILOTAGE = Dialect(
    package="pilotage", mark="pilotage.mark_loss({})", inference="pilotage.inference({})", detach="detach"
)


def dialect_of(target: Target) -> Dialect:
    """The code of a target that runs steps as calls."""
    return _PILOTAGE if target is Target.PILOTAGE else _POPTORCH
