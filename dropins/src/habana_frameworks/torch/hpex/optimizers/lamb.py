"""LAMB: Adam's direction, scaled by the norm of each parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from habana_frameworks.torch.hpex.optimizers.fused import own_graph, with_gradients
from pilotage.engine import Warned, log_event, loss_of


class FusedLamb(Optimizer):
    """LAMB like NVIDIA's and Habana's fused versions, which first clip gradients by their total norm.

    Without weight decay a parameter is scaled by its norm only with ``use_lamb``. ``fused`` and ``dtype`` choose
    kernels of the card and change no results.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
        amsgrad: bool = False,
        adam_w_mode: bool = True,
        grad_averaging: bool = True,
        set_grad_none: bool = True,
        max_grad_norm: float | None = 1.0,
        use_lamb: bool = False,
        fused: bool = False,
        dtype: torch.dtype | None = None,
    ) -> None:
        if amsgrad:
            raise RuntimeError("FusedLamb has no AMSGrad variant. Leave amsgrad at False.")
        if not adam_w_mode:
            message = "FusedLamb: adam_w_mode=False has no effect; the card's kernel always decays weights separately."
            log_event(Warned(message=message))
        given = {
            "lr": lr,
            "bias_correction": bias_correction,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "grad_averaging": grad_averaging,
            "max_grad_norm": max_grad_norm,
        }
        super().__init__(params, given)
        self.adam_w_mode, self.set_grad_none, self.use_lamb = int(adam_w_mode), set_grad_none, use_lamb

    def zero_grad(self, set_to_none: bool | None = None) -> None:
        """Clear the gradients; by default as ``set_grad_none`` says."""
        super().zero_grad(self.set_grad_none if set_to_none is None else set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Update all parameters."""
        loss_of(closure)
        with own_graph():
            norm = self._norm_of_gradients()
            for group in self.param_groups:
                group["step"] = group.get("step", 0) + 1
                divisor = _clipping_divisor(norm, group["max_grad_norm"])
                for parameter, gradient in with_gradients(group, "FusedLamb"):
                    self._update(parameter, gradient / divisor, group)

    def _norm_of_gradients(self) -> Tensor:
        gradients = [each.grad for group in self.param_groups for each in group["params"] if each.grad is not None]
        return torch.nn.utils.get_total_norm(gradients) if gradients else torch.zeros(())

    def _update(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        decay, (beta1, beta2) = group["weight_decay"], group["betas"]
        state = self.state[parameter]
        if not state:
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        state["exp_avg"].mul_(beta1).add_(gradient, alpha=1 - beta1 if group["grad_averaging"] else 1.0)
        state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        update = self._direction(state, group)
        update.add_(parameter, alpha=decay)
        if decay != 0 or self.use_lamb:
            update.mul_(_trust_ratio(parameter, update))
        parameter.add_(update, alpha=-group["lr"])

    def _direction(self, state: dict[str, Tensor], group: dict[str, Any]) -> Tensor:
        first, second = 1.0, 1.0
        if group["bias_correction"]:
            first, second = (1 - beta ** group["step"] for beta in group["betas"])
        return (state["exp_avg"] / first).div_((state["exp_avg_sq"] / second).sqrt_().add_(group["eps"]))


def _clipping_divisor(norm: Tensor, limit: float | None) -> Tensor:
    """The divisor of gradients that keeps their norm within the limit."""
    return torch.ones_like(norm) if not limit else (norm / limit).clamp(min=1.0)


def _trust_ratio(parameter: Tensor, update: Tensor) -> Tensor:
    """The norm of a parameter divided by that of its update; 1 if either is zero."""
    weight, length = parameter.norm(), update.norm()
    return torch.where((weight > 0) & (length > 0), weight / length, torch.ones_like(weight))
