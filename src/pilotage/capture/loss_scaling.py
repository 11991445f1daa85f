"""Loss scaling, which keeps small gradients from vanishing in half precision."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from pilotage.optim.rule import OptimizerPlan, Value
from pilotage.program.layout import Counter, VariableValue, shared_value

LARGE = 0.125 * torch.finfo(torch.float16).max
"""A scaled gradient above this counts as large."""

TOLERATED = 1e-7
"""The fraction of gradients that may be large."""

HIGHEST = 2.0**16
"""The upper limit of automatic scaling; the lower one is 1."""


def loss_scale(
    plan: OptimizerPlan, counters: Mapping[Counter, Tensor], variables: Mapping[VariableValue, Tensor]
) -> Value:
    """The scale of the loss: the user's loss scaling times the factor of automatic scaling."""
    scale = shared_value(plan, "loss_scaling", variables)
    return scale * counters[Counter.LOSS_SCALE] if plan.automatic_loss_scaling else scale


def adjust_loss_scale(factor: Tensor, scale: Value, gradients: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Double the factor, or halve it if gradients are large; set gradients to zero if any overflowed.

    Returns the gradients, still scaled.
    """
    finite = torch.stack([torch.isfinite(gradient).all() for gradient in gradients.values()]).all()
    large = torch.stack([(gradient.abs() > LARGE).sum() for gradient in gradients.values()]).sum()
    total = sum(gradient.numel() for gradient in gradients.values())
    fits = finite & (large <= TOLERATED * total)
    wanted = torch.where(fits, scale * 2, scale / 2).clamp(1.0, HIGHEST)
    factor.mul_(wanted / scale)
    return {name: torch.where(finite, gradient, 0) for name, gradient in gradients.items()}
