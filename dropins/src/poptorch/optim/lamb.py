"""LAMB with PopTorch's settings."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from pilotage.engine import Lamb
from poptorch.optim.base import Optimizer

__all__ = ["LAMB"]


class LAMB(Optimizer, Lamb):
    """LAMB: Adam's direction, with a step scaled by the norm of each parameter."""

    extras: ClassVar = {
        "bias_correction": True,
        "loss_scaling": 1.0,
        "accum_type": torch.float32,
        "first_order_momentum_accum_type": torch.float32,
        "second_order_momentum_accum_type": torch.float32,
    }

    def __init__(
        self,
        params: Any,
        lr: float | None = None,
        betas: tuple[float, float] | None = None,
        eps: float | None = None,
        weight_decay: float | None = None,
        bias_correction: bool | None = None,
        loss_scaling: float | None = None,
        max_weight_norm: float | None = None,
        accum_type: torch.dtype | None = None,
        first_order_momentum_accum_type: torch.dtype | None = None,
        second_order_momentum_accum_type: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "max_weight_norm": max_weight_norm,
            },
            bias_correction=bias_correction,
            loss_scaling=loss_scaling,
            accum_type=accum_type,
            first_order_momentum_accum_type=first_order_momentum_accum_type,
            second_order_momentum_accum_type=second_order_momentum_accum_type,
        )
