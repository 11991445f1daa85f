"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer

from habana_frameworks.torch.hpex.optimizers.fused import own_graph, with_gradients
from pilotage.engine import loss_of


class FusedSGD(Optimizer):
    """Stochastic gradient descent with the vendor's order of arguments: weight decay before dampening.

    Momentum starts as zero, so the first step applies ``1 - dampening``, which torch's SGD does not.
    """

    def __init__(
        self,
        params: Any,
        lr: float,
        momentum: float = 0,
        weight_decay: float = 0,
        dampening: float = 0,
        nesterov: bool = False,
    ) -> None:
        for name, value in (("lr", lr), ("momentum", momentum), ("weight_decay", weight_decay)):
            if value < 0:
                raise ValueError(f"{name} is {value}. It must be 0 or more.")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum needs a momentum above 0 and a dampening of 0.")
        given = {
            "lr": lr,
            "momentum": momentum,
            "weight_decay": weight_decay,
            "dampening": dampening,
            "nesterov": nesterov,
        }
        super().__init__(params, given)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters."""
        loss = loss_of(closure)
        with own_graph():
            for group in self.param_groups:
                self._update(group)
        return loss

    def _update(self, group: dict[str, Any]) -> None:
        momentum = group["momentum"]
        for parameter, gradient in with_gradients(group, "FusedSGD"):
            if group["weight_decay"]:
                gradient = gradient.add(parameter, alpha=group["weight_decay"])
            if momentum:
                state = self.state[parameter]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(parameter)
                buffer = state["momentum_buffer"]
                buffer.mul_(momentum).add_(gradient, alpha=1 - group["dampening"])
                gradient = gradient.add(buffer, alpha=momentum) if group["nesterov"] else buffer
            parameter.add_(gradient, alpha=-group["lr"])
