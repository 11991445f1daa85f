"""What the engine needs to know about one kind of optimizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from pilotage.optim.rule import UpdateRule

GroupSettings: TypeAlias = Mapping[str, Any]
"""One entry of a torch optimizer's ``param_groups``."""


_CYCLED = frozenset({"momentum", "beta1"})
"""What OneCycleLR and CyclicLR change besides the learning rate; they store its bounds in the parameter group."""


@dataclass(frozen=True, kw_only=True)
class Refinements:
    """Settings of an optimizer beyond torch's own."""

    loss_scaling: float = 1.0
    max_gradient_norm: float = float("inf")
    max_gradient_value: float = float("inf")
    accumulation_type: torch.dtype = torch.float32

    plan_constants: frozenset[str] = frozenset({"loss_scaling", "max_gradient_norm"})
    """Which of ``loss_scaling`` and ``max_gradient_norm`` are constants."""

    own_steps: bool = False
    """Whether the step() of an optimizer that has no rule becomes part of the program."""

    constants: frozenset[str] | None = None
    """The constants of every group; None derives them from torch's defaults, see :meth:`Family.constants`."""

    first_moment_dtype: torch.dtype | None = None
    """The type of momentum buffers and first moments; None is the parameter's type."""

    second_moment_dtype: torch.dtype | None = None
    """The type of second moments; None is the parameter's type."""

    bias_correction: bool | None = None
    """Whether to correct the bias of moments that start at zero; None leaves it to the optimizer."""

    tensorflow: bool = False
    """Whether RMSprop follows TensorFlow's definition."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """One kind of optimizer and its subclasses."""

    optimizer: type[torch.optim.Optimizer]

    rule: type[UpdateRule]
    """The arithmetic of its updates; stored programs name it by the name of this class."""

    values: Callable[[GroupSettings], dict[str, float]]
    """Reads the numbers of a parameter group."""

    choices: Callable[[torch.optim.Optimizer, GroupSettings, frozenset[str], Refinements], UpdateRule]
    """Reads what changes the formula: the rule of a parameter group, whose constants are given."""

    defaults: Mapping[str, float]
    """torch's default values."""

    fixed: frozenset[str] = frozenset()
    """Values that are always constants."""

    def constants(self, settings: GroupSettings) -> frozenset[str]:
        """The constants of a group: the fixed values, and those at torch's defaults.

        The learning rate is always variable, so that a scheduler can change it, and so is a cycled momentum.
        """
        values = self.values(settings)
        constants = self.fixed | {name for name, default in self.defaults.items() if values[name] == default}
        return constants - _CYCLED if "base_momentum" in settings else constants


def plain_values(*names: str) -> Callable[[GroupSettings], dict[str, float]]:
    """Read numbers that a parameter group has under the names of the rule."""
    return lambda settings: {name: float(settings[name]) for name in names}


def has_momentum(settings: GroupSettings, constants: frozenset[str]) -> bool:
    """Whether a parameter group needs a momentum buffer: a momentum of zero that may change needs one too."""
    return "momentum" not in constants or settings["momentum"] != 0
