"""Update rules and optimizer plans, as the engine sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import torch
from torch import Tensor

from pilotage.optim.workspace import Workspace

Value: TypeAlias = float | Tensor
"""A float is a constant of the program; a 0-dim float64 tensor may change from call to call."""


class UpdateRule(Protocol):
    """The arithmetic of an optimizer on tensors; settings that change the formula are fields of the rule."""

    @property
    def kind(self) -> str:
        """The optimizer by name; a rule can continue from the state of another one only if their kinds are equal."""
        ...

    @property
    def maximize(self) -> bool:
        """Whether to maximize the loss."""
        ...

    @property
    def slots(self) -> tuple[str, ...]:
        """Names of the state tensors of each parameter, such as ``momentum_buffer``."""
        ...

    def initial(self, slot: str, parameter: Tensor) -> Tensor:
        """The value of a parameter's slot before the first update."""
        ...

    def apply(self, work: Workspace, step: Tensor, values: Mapping[str, Value]) -> None:
        """Update parameters and slots in place; ``step`` counts the updates done before this one (0-dim float64)."""
        ...


@dataclass(frozen=True, kw_only=True)
class Group:
    """Parameters that one rule updates with one set of values."""

    rule: UpdateRule
    parameters: tuple[str, ...]
    """Names of the module's parameters, in the optimizer's order."""

    values: Mapping[str, float]
    """Learning rate, momentum and so on, under torch's names; ``betas`` become ``beta1`` and ``beta2``."""

    constants: frozenset[str] = frozenset()
    """Values that are compiled in and cannot change later."""


@dataclass(frozen=True, kw_only=True)
class OptimizerPlan:
    """Everything the engine needs to know about an optimizer."""

    groups: tuple[Group, ...]

    loss_scaling: float = 1.0
    """Factor on the gradient of the loss, removed before the update."""

    max_gradient_norm: float = float("inf")
    """Limit on the norm of all gradients together."""

    max_gradient_value: float = float("inf")
    """Limit on each element of the gradients, always compiled in."""

    accumulation_type: torch.dtype = torch.float32
    """The type in which gradients are accumulated."""

    automatic_loss_scaling: bool = False
    """Adapt the loss scaling to the gradients: double it while none is large, otherwise halve it."""

    stochastic_rounding: bool = False
    """Round new weights of fewer than 32 bits up or down at random, so that small updates count on average."""

    constants: frozenset[str] = field(default_factory=lambda: frozenset({"loss_scaling", "max_gradient_norm"}))
    """Which of the values above are compiled in."""

    @property
    def kind(self) -> str:
        """The optimizer by name; its state is of use only to optimizers of the same kind."""
        return " and ".join(sorted({group.rule.kind for group in self.groups}))
