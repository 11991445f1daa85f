"""The configured optimizer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from cosmictagger.configuration.choices import OptimizerKind

RMSPROP_EPSILON = 1e-4
"""The original's."""


def build_optimizer(
    kind: OptimizerKind, parameters: Iterable[torch.nn.Parameter], rate: float, family: Any = torch.optim
) -> torch.optim.Optimizer:
    """Adam as torch has it, or RMSprop with the original's epsilon; ``family`` may be ``poptorch.optim`` instead."""
    match kind:
        case OptimizerKind.adam:
            return family.Adam(parameters, lr=rate)  # type: ignore[no-any-return]
        case OptimizerKind.rmsprop:
            return family.RMSprop(parameters, lr=rate, eps=RMSPROP_EPSILON)  # type: ignore[no-any-return]


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Let the next step use a learning rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate
