"""Adam and AdamW with PopTorch's settings."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from poptorch.optim.base import Optimizer

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer, torch.optim.Adam):
    """``torch.optim.Adam`` with loss scaling, accumulation types and gradient clipping; AMSGrad is not supported."""

    extras: ClassVar = {
        "loss_scaling": 1.0,
        "accum_type": torch.float32,
        "first_order_momentum_accum_type": torch.float32,
        "second_order_momentum_accum_type": torch.float32,
        "max_grad_norm": float("inf"),
    }

    def __init__(
        self,
        params: Any,
        lr: float | None = None,
        betas: tuple[float, float] | None = None,
        eps: float | None = None,
        weight_decay: float | None = None,
        amsgrad: bool | None = None,
        loss_scaling: float | None = None,
        accum_type: torch.dtype | None = None,
        first_order_momentum_accum_type: torch.dtype | None = None,
        second_order_momentum_accum_type: torch.dtype | None = None,
        max_grad_norm: float | None = None,
        *,
        maximize: bool | None = None,
        foreach: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            _of_torch(lr, betas, eps, weight_decay, amsgrad, maximize, foreach),
            loss_scaling=loss_scaling,
            accum_type=accum_type,
            first_order_momentum_accum_type=first_order_momentum_accum_type,
            second_order_momentum_accum_type=second_order_momentum_accum_type,
            max_grad_norm=max_grad_norm,
        )


class AdamW(Optimizer, torch.optim.AdamW):
    """``torch.optim.AdamW`` with PopTorch's settings; bias correction is optional, AMSGrad is not supported."""

    extras: ClassVar = {**Adam.extras, "bias_correction": True}

    def __init__(
        self,
        params: Any,
        lr: float | None = None,
        betas: tuple[float, float] | None = None,
        eps: float | None = None,
        weight_decay: float | None = None,
        amsgrad: bool | None = None,
        loss_scaling: float | None = None,
        bias_correction: bool | None = None,
        accum_type: torch.dtype | None = None,
        first_order_momentum_accum_type: torch.dtype | None = None,
        second_order_momentum_accum_type: torch.dtype | None = None,
        max_grad_norm: float | None = None,
        *,
        maximize: bool | None = None,
        foreach: bool | None = None,
    ) -> None:
        settings = _of_torch(lr, betas, eps, weight_decay, amsgrad, maximize, foreach)
        super().__init__(
            params,
            settings,
            bias_correction=bias_correction,
            loss_scaling=loss_scaling,
            accum_type=accum_type,
            first_order_momentum_accum_type=first_order_momentum_accum_type,
            second_order_momentum_accum_type=second_order_momentum_accum_type,
            max_grad_norm=max_grad_norm,
        )


def _of_torch(
    lr: float | None,
    betas: tuple[float, float] | None,
    eps: float | None,
    weight_decay: float | None,
    amsgrad: bool | None,
    maximize: bool | None,
    foreach: bool | None,
) -> dict[str, Any]:
    """The settings that torch's own optimizers take."""
    return {
        "lr": lr,
        "betas": betas,
        "eps": eps,
        "weight_decay": weight_decay,
        "amsgrad": amsgrad,
        "maximize": maximize,
        "foreach": foreach,
    }
