"""Optimizers whose step follows the norm of each weight: LAMB and LARS, with the settings of version 2.1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class _Layerwise(torch.optim.Optimizer):
    """Updates each weight by itself, in the direction that a subclass gives."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update all weights that have a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    weight.add_(self.direction(weight, weight.grad, group), alpha=-group["lr"])
        return loss

    def direction(self, weight: Tensor, gradient: Tensor, group: dict[str, Any]) -> Tensor:
        """The step of a weight, before it is multiplied by the learning rate."""
        raise NotImplementedError


class Lamb(_Layerwise):
    """Adam's direction without bias correction, scaled to the norm of the weight, which counts as 10 at most."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        largest_norm: float = 10.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "largest_norm": largest_norm})

    def direction(self, weight: Tensor, gradient: Tensor, group: dict[str, Any]) -> Tensor:
        """The moments' direction, as long as the weight."""
        state = self.state[weight]
        if not state:
            state["step"] = torch.zeros(())
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(weight), torch.zeros_like(weight)
        first, second = group["betas"]
        state["step"] += 1
        state["exp_avg"].lerp_(gradient, 1 - first)
        state["exp_avg_sq"].mul_(second).addcmul_(gradient, gradient, value=1 - second)
        direction = state["exp_avg"] / (state["exp_avg_sq"].sqrt() + group["eps"])
        norm, length = weight.norm().clamp(max=group["largest_norm"]), direction.norm()
        ratio = torch.where((norm > 0) & (length > 0), norm / length, 1.0)
        return ratio * direction  # type: ignore[no-any-return]


class Lars(_Layerwise):
    """The gradient scaled to a thousandth of the weight's norm.

    Version 2.1 lists LARS but trains with SGD in its place.
    """

    def __init__(self, params: Any, lr: float = 1e-3, trust: float = 1e-3, eps: float = 1e-8) -> None:
        super().__init__(params, {"lr": lr, "trust": trust, "eps": eps})

    def direction(self, weight: Tensor, gradient: Tensor, group: dict[str, Any]) -> Tensor:
        """The gradient, as long as the trusted part of the weight."""
        norm, length = weight.norm(), gradient.norm()
        scale = group["trust"] * norm / (length + group["eps"])
        return gradient * torch.where((norm > 0) & (length > 0), scale, 1.0)
