"""Running moments of gradients, for Adam and LAMB."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pilotage.optim.arithmetic import add_scaled_square_, lerp_, scale_
from pilotage.optim.rule import Value
from pilotage.optim.workspace import Workspace, empty_slot

FIRST = "exp_avg"
SECOND = "exp_avg_sq"


@dataclass(frozen=True, kw_only=True)
class MomentRule:
    """The settings that Adam and LAMB share."""

    maximize: bool = False

    bias_correction: bool = True
    """Correct the bias of moments that start at zero."""

    first_moment_dtype: torch.dtype | None = None
    """The type of the first moment; None is the parameter's type."""

    second_moment_dtype: torch.dtype | None = None
    """The type of the second moment; None is the parameter's type."""

    def initial(self, slot: str, parameter: Tensor) -> Tensor:
        """Zeros."""
        return empty_slot(parameter, self.first_moment_dtype if slot == FIRST else self.second_moment_dtype)


def update_moments(work: Workspace, gradients: list[Tensor], beta1: Value, beta2: Value) -> None:
    """Move the first moment towards the gradients and the second towards their squares."""
    lerp_(work.slots[FIRST], gradients, 1 - beta1)
    work.store(FIRST)
    scale_(work.slots[SECOND], beta2)
    add_scaled_square_(work.slots[SECOND], gradients, 1 - beta2)
    work.store(SECOND)


def moment_values(settings: Mapping[str, Any], *names: str) -> dict[str, float]:
    """These values of a parameter group, and its betas as ``beta1`` and ``beta2``."""
    beta1, beta2 = settings["betas"]
    return {name: float(settings[name]) for name in names} | {"beta1": float(beta1), "beta2": float(beta2)}


def bias_divisor(step: Tensor, beta: Value) -> Tensor:
    """The divisor that corrects the bias of a moment in the update after ``step`` others."""
    return 1 - torch.pow(beta, step + 1)
