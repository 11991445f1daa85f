"""Adam, AdamW and AMSGrad."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from pilotage.optim.arithmetic import (
    add_scaled,
    divide_,
    is_zero,
    scale_,
    shift_,
    square_root,
    subtract_scaled_quotient_,
)
from pilotage.optim.family import Family, GroupSettings, Refinements
from pilotage.optim.moments import FIRST, SECOND, MomentRule, bias_divisor, moment_values, update_moments
from pilotage.optim.rule import Value
from pilotage.optim.workspace import Workspace
from pilotage.torch_private import foreach_maximum_, foreach_sqrt

_MAX_SECOND = "max_exp_avg_sq"


@dataclass(frozen=True, kw_only=True)
class AdamRule(MomentRule):
    """The arithmetic of ``torch.optim.Adam`` and ``AdamW``: ``lr``, ``beta1``, ``beta2``, ``eps``, ``weight_decay``."""

    decoupled_weight_decay: bool = False
    """Decay the parameters directly, as AdamW does, instead of adding to the gradients."""

    amsgrad: bool = False

    @property
    def kind(self) -> str:
        """Adam or AdamW: weight decay is part of Adam's moments only."""
        return "AdamW" if self.decoupled_weight_decay else "Adam"

    @property
    def slots(self) -> tuple[str, ...]:
        """The two moments, and for AMSGrad the largest second moment."""
        return (FIRST, SECOND, _MAX_SECOND) if self.amsgrad else (FIRST, SECOND)

    def apply(self, work: Workspace, step: Tensor, values: Mapping[str, Value]) -> None:
        """Update parameters and moments in place."""
        update_moments(work, self._decay_weights(work, values), values["beta1"], values["beta2"])
        step_size, denominators = values["lr"], list(foreach_sqrt(self._second_moments(work)))
        if self.bias_correction:
            step_size = step_size / bias_divisor(step, values["beta1"])
            divide_(denominators, square_root(bias_divisor(step, values["beta2"])))
        shift_(denominators, values["eps"])
        subtract_scaled_quotient_(work.parameters, work.slots[FIRST], denominators, step_size)

    def _decay_weights(self, work: Workspace, values: Mapping[str, Value]) -> list[Tensor]:
        """Apply weight decay to the parameters if it is decoupled, otherwise to the returned gradients."""
        weight_decay = values["weight_decay"]
        if is_zero(weight_decay):
            return work.gradients
        if not self.decoupled_weight_decay:
            return add_scaled(work.gradients, work.parameters, weight_decay)
        scale_(work.parameters, 1 - values["lr"] * weight_decay)
        return work.gradients

    def _second_moments(self, work: Workspace) -> list[Tensor]:
        if not self.amsgrad:
            return work.slots[SECOND]
        foreach_maximum_(work.slots[_MAX_SECOND], work.slots[SECOND])
        work.store(_MAX_SECOND)
        return work.slots[_MAX_SECOND]


def _adam_values(settings: GroupSettings) -> dict[str, float]:
    return moment_values(settings, "lr", "eps", "weight_decay")


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


ADAMW = Family(
    optimizer=torch.optim.AdamW,
    values=_adam_values,
    rule=AdamRule,
    choices=_adam_rule,
    defaults={"eps": 1e-8, "weight_decay": 1e-2},
    fixed=frozenset({"beta1", "beta2"}),
)


ADAM = Family(
    optimizer=torch.optim.Adam,
    values=_adam_values,
    rule=AdamRule,
    choices=_adam_rule,
    defaults={"eps": 1e-8, "weight_decay": 0.0},
    fixed=frozenset({"beta1", "beta2"}),
)
