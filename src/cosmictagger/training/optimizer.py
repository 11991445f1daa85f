"""The configured optimizer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

import torch

from cosmictagger.configuration.choices import OptimizerKind
from cosmictagger.errors import CheckpointError

RMSPROP_EPSILON = 1e-4
"""The original's."""


def build_optimizer(
    kind: OptimizerKind, parameters: Iterable[torch.nn.Parameter], rate: float, family: ModuleType = torch.optim
) -> torch.optim.Optimizer:
    """Adam as torch has it, or RMSprop with the original's epsilon; ``family`` may be ``poptorch.optim`` instead."""
    match kind:
        case OptimizerKind.adam:
            return family.Adam(parameters, lr=rate)  # type: ignore[no-any-return]
        case OptimizerKind.rmsprop:
            return family.RMSprop(parameters, lr=rate, eps=RMSPROP_EPSILON)  # type: ignore[no-any-return]


STATE_KEYS = {OptimizerKind.adam: "exp_avg", OptimizerKind.rmsprop: "square_avg"}
"""What tells the state of one optimizer from that of the other."""


def check_optimizer_state(kind: OptimizerKind, optimizer_state: Mapping[str, Any] | None) -> None:
    """Raise where a checkpoint's optimizer is not the configured one, which could not go on from it."""
    slots = {slot for each in (optimizer_state or {}).get("state", {}).values() for slot in each}
    for other, slot in STATE_KEYS.items():
        if other is not kind and slot in slots:
            raise CheckpointError(
                f"The checkpoint was trained with {other.name}, and mode.optimizer.name={kind.name} cannot go on from it. Say "
                f"mode.optimizer.name={other.name}, or start with another run.id."
            )


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Let the next step use a learning rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate
