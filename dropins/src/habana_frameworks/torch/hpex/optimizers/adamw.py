"""Adam with decoupled weight decay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import AdamW


class FusedAdamW(AdamW):
    """torch's AdamW with the vendor's defaults; without bias correction the moments are taken as they are."""

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
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)
        return loss

    def _update(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state, (beta1, beta2), rate = self.state[parameter], group["betas"], group["lr"]
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        state["step"] += 1
        parameter.mul_(1 - rate * group["weight_decay"])
        state["exp_avg"].lerp_(gradient, 1 - beta1)
        state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        parameter.addcdiv_(state["exp_avg"], state["exp_avg_sq"].sqrt().add_(group["eps"]), value=-rate)
