"""The supported optimizers, and how to read the parameter groups of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from pilotage.errors import OptionError
from pilotage.optim.adam import AdamRule
from pilotage.optim.lamb import Lamb, LambRule, lamb_values
from pilotage.optim.moments import moment_values
from pilotage.optim.rmsprop import RmspropRule
from pilotage.optim.rule import UpdateRule
from pilotage.optim.sgd import SgdRule

GroupSettings: TypeAlias = Mapping[str, Any]
"""One entry of a torch optimizer's ``param_groups``."""


_CYCLED = frozenset({"momentum", "beta1"})
"""What OneCycleLR and CyclicLR change besides the learning rate; they store its bounds in the parameter group."""


@dataclass(frozen=True, kw_only=True)
class Refinements:
    """Settings of an optimizer beyond torch's own."""

    loss_scaling: float = 1.0
    max_gradient_norm: float = float("inf")
    accumulation_type: torch.dtype = torch.float32

    plan_constants: frozenset[str] = frozenset({"loss_scaling", "max_gradient_norm"})
    """Which of ``loss_scaling`` and ``max_gradient_norm`` are constants."""

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
    values: Callable[[GroupSettings], dict[str, float]]
    rule: Callable[[torch.optim.Optimizer, GroupSettings, frozenset[str], Refinements], UpdateRule]

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


def family_of(optimizer: torch.optim.Optimizer) -> Family:
    """The family of an optimizer."""
    for family in _FAMILIES:
        if isinstance(optimizer, family.optimizer):
            return family
    supported = ", ".join(f"{f.optimizer.__module__.split('.')[0]}'s {f.optimizer.__name__}" for f in _FAMILIES)
    raise OptionError(
        f"{type(optimizer).__name__} cannot become part of a program. Use one of {supported}, or a subclass that "
        "only presets their arguments."
    )


def _plain_values(*names: str) -> Callable[[GroupSettings], dict[str, float]]:
    return lambda settings: {name: float(settings[name]) for name in names}


def _adam_values(settings: GroupSettings) -> dict[str, float]:
    return moment_values(settings, "lr", "eps", "weight_decay")


def _has_momentum(settings: GroupSettings, constants: frozenset[str]) -> bool:
    return "momentum" not in constants or settings["momentum"] != 0


def _sgd_rule(
    optimizer: torch.optim.Optimizer, settings: GroupSettings, constants: frozenset[str], refinements: Refinements
) -> SgdRule:
    return SgdRule(
        momentum=_has_momentum(settings, constants),
        nesterov=settings["nesterov"],
        maximize=settings["maximize"],
        momentum_dtype=refinements.first_moment_dtype,
    )


def _adam_rule(
    optimizer: torch.optim.Optimizer, settings: GroupSettings, constants: frozenset[str], refinements: Refinements
) -> AdamRule:
    return AdamRule(
        decoupled_weight_decay=settings["decoupled_weight_decay"],
        amsgrad=settings["amsgrad"],
        maximize=settings["maximize"],
        bias_correction=refinements.bias_correction is not False,
        first_moment_dtype=refinements.first_moment_dtype,
        second_moment_dtype=refinements.second_moment_dtype,
    )


def _rmsprop_rule(
    optimizer: torch.optim.Optimizer, settings: GroupSettings, constants: frozenset[str], refinements: Refinements
) -> RmspropRule:
    return RmspropRule(
        momentum=_has_momentum(settings, constants),
        centered=settings["centered"],
        maximize=settings["maximize"],
        tensorflow=refinements.tensorflow,
        first_moment_dtype=refinements.first_moment_dtype,
        second_moment_dtype=refinements.second_moment_dtype,
    )


def _lamb_rule(
    optimizer: torch.optim.Optimizer, settings: GroupSettings, constants: frozenset[str], refinements: Refinements
) -> LambRule:
    corrected = refinements.bias_correction
    return LambRule(
        maximize=settings["maximize"],
        bias_correction=getattr(optimizer, "bias_correction", True) if corrected is None else corrected,
        first_moment_dtype=refinements.first_moment_dtype,
        second_moment_dtype=refinements.second_moment_dtype,
    )


# A subclass comes before its base class.
_FAMILIES = (
    Family(
        optimizer=torch.optim.SGD,
        values=_plain_values("lr", "momentum", "dampening", "weight_decay"),
        rule=_sgd_rule,
        defaults={"momentum": 0.0, "dampening": 0.0, "weight_decay": 0.0},
    ),
    Family(
        optimizer=torch.optim.AdamW,
        values=_adam_values,
        rule=_adam_rule,
        defaults={"eps": 1e-8, "weight_decay": 1e-2},
        fixed=frozenset({"beta1", "beta2"}),
    ),
    Family(
        optimizer=torch.optim.Adam,
        values=_adam_values,
        rule=_adam_rule,
        defaults={"eps": 1e-8, "weight_decay": 0.0},
        fixed=frozenset({"beta1", "beta2"}),
    ),
    Family(
        optimizer=torch.optim.RMSprop,
        values=_plain_values("lr", "alpha", "eps", "weight_decay", "momentum"),
        rule=_rmsprop_rule,
        defaults={"eps": 1e-8, "weight_decay": 0.0, "momentum": 0.0},
        fixed=frozenset({"alpha"}),
    ),
    Family(
        optimizer=Lamb,
        values=lamb_values,
        rule=_lamb_rule,
        defaults={"eps": 1e-8, "weight_decay": 1e-2, "max_weight_norm": 65500.0},
        fixed=frozenset({"beta1", "beta2"}),
    ),
)
