"""Adam with decoupled weight decay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.optim import AdamW

from pilotage.engine import AdamRule, loss_of, moment_values, update_eagerly

_UNCORRECTED = AdamRule(decoupled_weight_decay=True, bias_correction=False)


class FusedAdamW(AdamW):
    """torch's AdamW with the vendor's defaults, and optionally without bias correction."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        bias_correction: bool = True,
    ) -> None:
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
        self.defaults["bias_correction"] = bias_correction
        for group in self.param_groups:
            group.setdefault("bias_correction", bias_correction)
        if len({group["bias_correction"] for group in self.param_groups}) > 1:
            raise ValueError("bias_correction differs between groups of parameters. Give it once, for all of them.")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters."""
        if self.param_groups[0]["bias_correction"]:
            return super().step(closure)
        return self._step_uncorrected(closure)

    @torch.no_grad()
    def _step_uncorrected(self, closure: Callable[[], Any] | None) -> Any:
        loss = loss_of(closure)
        for group in self.param_groups:
            values = moment_values(group, "lr", "eps", "weight_decay")
            update_eagerly(_UNCORRECTED, group["params"], self.state, values)
        return loss
