"""The update of AdamW as an operation on lists of tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from habana_frameworks.torch.hpex.operations.registry import Operations

_BEFORE = (
    "Tensor[] gradients, Tensor(a!)[] weights, Tensor(b!)[] exp_avg, Tensor(c!)[] exp_avg_sq, Tensor neg_step_t, "
    "float beta1, float beta2, float epsilon"
)


def optimizer_adamw(
    gradients: Sequence[Tensor],
    weights: Sequence[Tensor],
    exp_avg: Sequence[Tensor],
    exp_avg_sq: Sequence[Tensor],
    neg_step_t: Tensor,
    beta1: float,
    beta2: float,
    epsilon: float,
    modified_wd: float | Tensor,
) -> None:
    """Update weights and moments in place; ``modified_wd`` is ``1 - lr * weight_decay``."""
    with torch.no_grad():
        for gradient, weight, first, second in zip(gradients, weights, exp_avg, exp_avg_sq, strict=True):
            first.mul_(beta1).add_(gradient, alpha=1 - beta1)
            second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
            weight.mul_(modified_wd).add_(first / second.sqrt().add_(epsilon) * neg_step_t)


def _with_tensor(
    gradients: Sequence[Tensor],
    weights: Sequence[Tensor],
    exp_avg: Sequence[Tensor],
    exp_avg_sq: Sequence[Tensor],
    neg_step_t: Tensor,
    beta1: float,
    beta2: float,
    epsilon: float,
    modified_wd_t: Tensor,
    is_wd_modified: bool,
) -> None:
    """The form of eager mode: the decay as a tensor, and whether there is any."""
    decay: float | Tensor = modified_wd_t if is_wd_modified else 1.0
    optimizer_adamw(gradients, weights, exp_avg, exp_avg_sq, neg_step_t, beta1, beta2, epsilon, decay)


OPERATIONS: Operations = (
    (f"optimizer_adamw({_BEFORE}, float modified_wd) -> ()", optimizer_adamw),
    (f"optimizer_adamw.eager({_BEFORE}, Tensor modified_wd_t, bool is_wd_modified) -> ()", _with_tensor),
)
