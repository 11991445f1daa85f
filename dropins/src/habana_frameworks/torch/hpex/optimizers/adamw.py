"""Adam with decoupled weight decay."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from habana_frameworks.torch.hpex.optimizers.fused import own_graph, with_gradients
from habana_frameworks.torch.hpex.optimizers.moments import Moment, MomentType
from pilotage.engine import loss_of


class FusedAdamW(Optimizer):
    """AdamW with the vendor's rule: bias correction is part of the step size.

    Epsilon is therefore added to the root of the uncorrected second moment, where torch's AdamW corrects it first.
    ``moments_dtype`` stores both moments in another type; float8 types are stored with a scale.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        bias_correction: bool = True,
        moments_dtype: MomentType | tuple[MomentType, MomentType] = None,
    ) -> None:
        for name, value in (("lr", lr), ("eps", eps)):
            if value < 0:
                raise ValueError(f"{name} is {value}. It must be 0 or more.")
        if not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"betas is {betas}. Both must be at least 0 and less than 1.")
        pair = moments_dtype if isinstance(moments_dtype, tuple) else (moments_dtype, moments_dtype)
        self._moments = Moment("exp_avg", pair[0]), Moment("exp_avg_sq", pair[1])
        given = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "bias_correction": bias_correction,
        }
        super().__init__(params, given)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters."""
        loss = loss_of(closure)
        with own_graph():
            for group in self.param_groups:
                group["step"] = group.get("step", 0) + 1
                for parameter, gradient in with_gradients(group, "FusedAdamW"):
                    self._update(parameter, gradient, group)
        return loss

    def _update(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        (beta1, beta2), rate = group["betas"], group["lr"]
        state = self.state[parameter]
        state.setdefault("step", 0)
        first, second = (moment.read(state, parameter) for moment in self._moments)
        first.mul_(beta1).add_(gradient, alpha=1 - beta1)
        second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        for moment, value in zip(self._moments, (first, second), strict=True):
            moment.write(state, value)
        if group.get("correct_bias", group["bias_correction"]):
            number = group["step"]
            rate = rate * math.sqrt(1 - beta2**number) / (1 - beta1**number)
        if group["weight_decay"]:
            parameter.mul_(1 - group["lr"] * group["weight_decay"])
        parameter.add_((first / second.sqrt().add_(group["eps"])).to(parameter.dtype), alpha=-rate)


class FunctionalAdamW(FusedAdamW):
    """FusedAdamW for torch's distributed optimizers, which pass the gradients to ``step``."""

    def __init__(
        self,
        params: list[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        _allow_empty_param_list: bool = False,
        moments_dtype: MomentType | tuple[MomentType, MomentType] = None,
    ) -> None:
        if not params and not _allow_empty_param_list:
            raise ValueError("optimizer got an empty parameter list")
        # An optimizer of torch needs a parameter; the group takes the real ones, which may be none.
        super().__init__([torch.zeros(1)], lr, betas, eps, weight_decay, moments_dtype=moments_dtype)
        self.param_group = self.param_groups[0]
        self.param_group["params"] = list(params)

    def step(self, gradients: Any = None) -> None:  # type: ignore[override]
        """Update all parameters with the given gradients; None leaves a parameter out."""
        parameters = self.param_group["params"]
        if len(gradients or ()) != len(parameters):
            raise ValueError(f"{len(gradients or ())} gradients were given for {len(parameters)} parameters.")
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        super().step()

    def step_param(self, param: Tensor, grad: Tensor | None) -> None:
        """Raise an error: parameters are updated together."""
        raise NotImplementedError("FusedAdamW updates all parameters together. Call step(gradients).")
