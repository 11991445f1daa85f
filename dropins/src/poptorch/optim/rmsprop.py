"""RMSprop with PopTorch's settings."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from poptorch.optim.base import Optimizer

__all__ = ["RMSprop"]


class RMSprop(Optimizer, torch.optim.RMSprop):
    """``torch.optim.RMSprop`` with loss scaling and accumulation types, or TensorFlow's variant of it."""

    extras: ClassVar = {
        "loss_scaling": 1.0,
        "accum_type": torch.float32,
        "first_order_momentum_accum_type": torch.float32,
        "second_order_momentum_accum_type": torch.float32,
        "use_tf_variant": False,
    }

    def __init__(
        self,
        params: Any,
        lr: float | None = None,
        alpha: float | None = None,
        eps: float | None = None,
        weight_decay: float | None = None,
        momentum: float | None = None,
        centered: bool | None = None,
        loss_scaling: float | None = None,
        accum_type: torch.dtype | None = None,
        first_order_momentum_accum_type: torch.dtype | None = None,
        second_order_momentum_accum_type: torch.dtype | None = None,
        use_tf_variant: bool | None = None,
        *,
        maximize: bool | None = None,
        foreach: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "alpha": alpha,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "centered": centered,
                "maximize": maximize,
                "foreach": foreach,
            },
            loss_scaling=loss_scaling,
            accum_type=accum_type,
            first_order_momentum_accum_type=first_order_momentum_accum_type,
            second_order_momentum_accum_type=second_order_momentum_accum_type,
            use_tf_variant=use_tf_variant,
        )
