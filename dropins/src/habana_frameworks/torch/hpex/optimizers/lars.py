"""LARS: the update of each layer scaled by the norms of its weights and gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from habana_frameworks.torch.hpex.optimizers.fused import own_graph, with_gradients
from habana_frameworks.torch.hpex.optimizers.resource_apply_momentum import FusedResourceApplyMomentum


class FusedLars(Optimizer):
    """LARS around FusedResourceApplyMomentum, which adds what it is given to the weights.

    ``skip_mask`` has a truth value for each parameter of a group, in order: true scales its gradient by
    ``eeta * |weight| / (|gradient| + weight_decay * |weight| + eps)`` and adds weight decay; false does neither, as is
    usual for biases and norms. All gradients are multiplied by the negative learning rate.
    """

    def __init__(self, optimizer: Optimizer, skip_mask: Sequence[Any], eeta: float = 0.001, eps: float = 1e-8) -> None:
        # Not initialised as an optimizer: parameters and state are those of the other one.
        if not isinstance(optimizer, FusedResourceApplyMomentum):
            raise TypeError(
                f"FusedLars was given {type(optimizer).__name__}, which would apply the learning rate and the sign a "
                "second time. Give it FusedResourceApplyMomentum."
            )
        self.optim, self.skip_mask, self.eeta, self.eps = optimizer, skip_mask, eeta, eps
        self.defaults = optimizer.defaults

    @property
    def param_groups(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The parameters of the inner optimizer."""
        return self.optim.param_groups

    @property
    def state(self) -> Any:  # type: ignore[override]
        """The state of the inner optimizer."""
        return self.optim.state

    def __getstate__(self) -> dict[str, Any]:
        return {"optim": self.optim, "skip_mask": self.skip_mask, "eeta": self.eeta, "eps": self.eps}

    def __repr__(self) -> str:
        return f"FusedLars(eeta={self.eeta}, eps={self.eps}, {self.optim!r})"

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the inner optimizer."""
        return self.optim.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state of the inner optimizer."""
        self.optim.load_state_dict(state_dict)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters to the inner optimizer."""
        self.optim.add_param_group(param_group)

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Clear the gradients."""
        self.optim.zero_grad(set_to_none=set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Scale the gradients in place, and let the inner optimizer add them."""
        if closure is not None:
            raise TypeError("FusedLars.step takes no closure.")
        with own_graph():
            for group in self.param_groups:
                self._scale(group)
        decays = [group["weight_decay"] for group in self.param_groups]
        for group in self.param_groups:
            group["weight_decay"] = 0
        self.optim.step()
        for group, decay in zip(self.param_groups, decays, strict=True):
            group["weight_decay"] = decay

    def _scale(self, group: dict[str, Any]) -> None:
        numbers = {id(parameter): number for number, parameter in enumerate(group["params"])}
        if len(self.skip_mask) < len(numbers):
            raise ValueError(f"skip_mask has {len(self.skip_mask)} values for a group of {len(numbers)} parameters.")
        for parameter, gradient in with_gradients(group, "FusedLars"):
            if self.skip_mask[numbers[id(parameter)]]:
                ratio = self._ratio(parameter, gradient, group["weight_decay"])
                gradient.add_(parameter, alpha=group["weight_decay"]).mul_(ratio)
            gradient.mul_(-group["lr"])

    def _ratio(self, parameter: Tensor, gradient: Tensor, decay: float) -> Tensor:
        weight, length = parameter.norm(), gradient.norm()
        ratio = self.eeta * weight / (length + decay * weight + self.eps)
        return torch.where((weight > 0) & (length > 0), ratio, torch.ones_like(ratio))
