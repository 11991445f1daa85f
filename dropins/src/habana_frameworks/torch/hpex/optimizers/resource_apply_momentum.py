"""Momentum for gradients that are scaled already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.optim import Optimizer

from habana_frameworks.torch.hpex.optimizers.fused import own_graph, with_gradients
from pilotage.engine import loss_of


class FusedResourceApplyMomentum(Optimizer):
    """Adds ``momentum * buffer + gradient`` to each weight: the inner optimizer of FusedLars.

    The gradients must contain learning rate and sign already. ``lr``, ``weight_decay`` and ``nesterov`` are kept for
    FusedLars and schedulers; the step does not use them.
    """

    def __init__(
        self, params: Any, lr: float, momentum: float = 0, weight_decay: float = 0, nesterov: bool = False
    ) -> None:
        for name, value in (("lr", lr), ("momentum", momentum), ("weight_decay", weight_decay)):
            if value < 0:
                raise ValueError(f"{name} is {value}. It must be 0 or more.")
        given = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "nesterov": nesterov}
        super().__init__(params, given)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters."""
        loss = loss_of(closure)
        with own_graph():
            for group in self.param_groups:
                for parameter, gradient in with_gradients(group, "FusedResourceApplyMomentum"):
                    state = self.state[parameter]
                    if "momentum_buffer" in state:
                        state["momentum_buffer"].mul_(group["momentum"]).add_(gradient)
                    else:
                        state["momentum_buffer"] = gradient.clone()
                    parameter.add_(state["momentum_buffer"])
        return loss
