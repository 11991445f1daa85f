"""What to write for a change, in the words of the interface that a script uses."""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.options.choices import LossRule
from pilotage.options.execution import Execution

__all__ = ["Wording", "wording_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wording:
    """One line for each change; ``{}`` is its number."""

    device_iterations: str
    loading: str
    replicas: str
    stages: str
    activations: str
    optimizer: str
    recomputation: str
    accumulation: str


_POPTORCH = Wording(
    device_iterations="options.deviceIterations({})",
    loading="DataLoader(..., num_workers=4, mode=poptorch.DataLoaderMode.Async)",
    replicas="options.replicationFactor({})",
    stages="poptorch.BeginBlock at the modules that `pilotage predict --split {}` names",
    activations="options.TensorLocations.setActivationLocation(poptorch.TensorLocationSettings().useOnChipStorage(False))",
    optimizer="options.TensorLocations.setOptimizerLocation(poptorch.TensorLocationSettings().useOnChipStorage(False))",
    recomputation="x = poptorch.recomputationCheckpoint(x) after each {}",
    accumulation="options.Training.gradientAccumulation({})",
)
_PILOTAGE = Wording(
    device_iterations="pilotage.training(..., device_iterations={})",
    loading="DataLoader(..., num_workers=4), read ahead by pilotage.batches(loader, step)",
    replicas="pilotage.training(..., replicas={})",
    stages="the calls of pilotage.enter_stage that `pilotage predict --split {}` prints",
    activations="pilotage.training(..., locations={{'activations': 0}})",
    optimizer="pilotage.training(..., locations={{'optimizer': 0}})",
    recomputation="pilotage.keep_for_backward(x) after each {}",
    accumulation="pilotage.training(..., gradient_accumulation={})",
)


def wording_of(execution: Execution) -> Wording:
    """The wording for the interface that made these options."""
    # Only PopTorch takes the loss that forward calls for the one to train on.
    return _POPTORCH if execution.loss_rule is LossRule.CALLED else _PILOTAGE
