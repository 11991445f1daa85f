"""Stochastic gradient descent with PopTorch's settings."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from poptorch._logging import logger
from poptorch.optim.base import Optimizer

__all__ = ["SGD"]


class SGD(Optimizer, torch.optim.SGD):
    """``torch.optim.SGD`` with loss scaling, accumulation types and gradient clipping.

    One combined accumulator with its velocity scaling is a way to save memory on an IPU; the numbers are the same.
    """

    extras: ClassVar = {
        "loss_scaling": 1.0,
        "use_combined_accum": False,
        "accum_type": torch.float32,
        "velocity_accum_type": torch.float32,
        "max_grad_norm": float("inf"),
    }

    def __init__(
        self,
        params: Any,
        lr: float,
        momentum: float | None = None,
        dampening: float | None = None,
        weight_decay: float | None = None,
        nesterov: bool | None = None,
        loss_scaling: float | None = None,
        velocity_scaling: float | None = None,
        use_combined_accum: bool | None = None,
        accum_type: torch.dtype | None = None,
        velocity_accum_type: torch.dtype | None = None,
        max_grad_norm: float | None = None,
        *,
        maximize: bool | None = None,
        foreach: bool | None = None,
    ) -> None:
        if velocity_scaling is not None and not use_combined_accum:
            logger.warning("velocity_scaling is ignored: it only matters with use_combined_accum=True.")
            velocity_scaling = None
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
            },
            loss_scaling=loss_scaling,
            velocity_scaling=velocity_scaling,
            use_combined_accum=use_combined_accum,
            accum_type=accum_type,
            velocity_accum_type=velocity_accum_type,
            max_grad_norm=max_grad_norm,
        )
        if use_combined_accum:
            self._keep_in_groups("velocity_scaling", 1.0 if velocity_scaling is None else velocity_scaling)

    def _keep_in_groups(self, name: str, value: float) -> None:
        self.defaults[name] = value
        for group in self.param_groups:
            group.setdefault(name, value)
