"""The configured optimizer."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from cosmictagger.configuration.choices import OptimizerKind

RMSPROP_EPSILON = 1e-4
"""The original's."""


def build_optimizer(
    kind: OptimizerKind, parameters: Iterable[torch.nn.Parameter], rate: float
) -> torch.optim.Optimizer:
    """Adam as torch has it, or RMSprop with the original's epsilon."""
    match kind:
        case OptimizerKind.adam:
            return torch.optim.Adam(parameters, lr=rate)
        case OptimizerKind.rmsprop:
            return torch.optim.RMSprop(parameters, lr=rate, eps=RMSPROP_EPSILON)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Let the next step use a learning rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate
