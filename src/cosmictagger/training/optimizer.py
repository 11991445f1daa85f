"""The configured optimizer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

import torch

from cosmictagger.configuration.choices import OptimizerKind
from cosmictagger.errors import CheckpointError

RMSPROP_EPSILON = 1e-4
"""The original's value."""


def build_optimizer(
    kind: OptimizerKind, parameters: Iterable[torch.nn.Parameter], rate: float, family: ModuleType = torch.optim
) -> torch.optim.Optimizer:
    """Torch's Adam, or RMSprop with the original's epsilon; ``family`` can be ``poptorch.optim``."""
    match kind:
        case OptimizerKind.adam:
            return family.Adam(parameters, lr=rate)  # type: ignore[no-any-return]
        case OptimizerKind.rmsprop:
            return family.RMSprop(parameters, lr=rate, eps=RMSPROP_EPSILON)  # type: ignore[no-any-return]


STATE_KEYS = {OptimizerKind.adam: "exp_avg", OptimizerKind.rmsprop: "square_avg"}
"""A key that only this optimizer's state has."""


def check_optimizer_state(kind: OptimizerKind, optimizer_state: Mapping[str, Any] | None) -> None:
    """Raise if a checkpoint belongs to another optimizer than the configured one."""
    slots = {slot for each in (optimizer_state or {}).get("state", {}).values() for slot in each}
    for other, slot in STATE_KEYS.items():
        if other is not kind and slot in slots:
            raise CheckpointError(
                f"The checkpoint was trained with {other.name}, so mode.optimizer.name={kind.name} cannot continue it. "
                f"Use mode.optimizer.name={other.name}, or start with another run.id."
            )


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of the next step."""
    for group in optimizer.param_groups:
        group["lr"] = rate
