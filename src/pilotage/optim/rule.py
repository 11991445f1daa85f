"""What an optimizer's arithmetic looks like to the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import torch
from torch import Tensor

from pilotage.optim.workspace import Workspace

Value: TypeAlias = float | Tensor
"""A float is compiled into the program; a 0-dim float64 tensor may change from call to call."""


class UpdateRule(Protocol):
    """One optimizer's arithmetic on tensors; choices that change the formula are fields of the rule."""

    @property
    def maximize(self) -> bool:
        """Whether to go uphill."""
        ...

    @property
    def slots(self) -> tuple[str, ...]:
        """Names of the state tensors that each parameter has, such as ``momentum``."""
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
    """Learning rate, momentum and the like, under torch's names; ``betas`` are ``beta1`` and ``beta2``."""

    constants: frozenset[str] = frozenset()
    """Values that are compiled in and may not change later."""


@dataclass(frozen=True, kw_only=True)
class OptimizerPlan:
    """Everything the engine needs to know of an optimizer."""

    groups: tuple[Group, ...]

    loss_scaling: float = 1.0
    """Factor on the gradient of the loss, undone before the update."""

    max_gradient_norm: float = float("inf")
    """Bound on the norm of all gradients together."""

    accumulation_type: torch.dtype = torch.float32
    """What gradients are pooled in."""

    automatic_loss_scaling: bool = False
    """Let the loss scaling follow the gradients: twice as much as long as none of them is large, else half."""

    stochastic_rounding: bool = False
    """Round new weights of fewer than 32 bits up or down at random, so that small updates count in the mean."""

    constants: frozenset[str] = field(default_factory=lambda: frozenset({"loss_scaling", "max_gradient_norm"}))
    """Which of the values above are compiled in."""
