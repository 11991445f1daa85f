"""An optimizer's values under PopTorch's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pilotage.engine import Group, OptimizerPlan, SgdRule

__all__ = ["from_ipu_param", "to_ipu_param"]

_LOSS_SCALING = "lossScaling_FLOAT"

_NAMES = {
    "lr": "learningRate",
    "weight_decay": "weightDecay",
    "beta1": "beta1",
    "beta2": "beta2",
    "eps": "eps",
    "alpha": "alpha",
    "momentum": "momentum",
    "dampening": "dampening",
    "max_weight_norm": "maxWeightNorm",
}


@dataclass(frozen=True)
class _Coding:
    """How a value is written: its name, and a function of the value."""

    name: str
    encode: Callable[[float], float] = float
    decode: Callable[[float], float] = float

    def read(self, written: Tensor | None, present: float) -> float:
        """The written value, or the current one if it would be written the same way."""
        # Written values have 32 bits; using one that did not change would lose precision.
        if written is None or torch.equal(written, _number(self.encode(present))):
            return present
        try:
            return self.decode(float(written))
        except ZeroDivisionError:
            return present


def to_ipu_param(plan: OptimizerPlan) -> dict[str, Tensor]:
    """The values of an optimizer, parameter by parameter."""
    named = {_LOSS_SCALING: _number(plan.loss_scaling)}
    for group in plan.groups:
        for value, number in group.values.items():
            coding = _coding(value, group, group.values, plan.loss_scaling)
            encoded = _number(coding.encode(number))
            named |= {_specific(coding, parameter): encoded.clone() for parameter in group.parameters}
    return named


def from_ipu_param(plan: OptimizerPlan, named: Mapping[str, Tensor]) -> OptimizerPlan:
    """A plan with every changed variable value replaced; constants stay."""
    loss_scaling = plan.loss_scaling
    if "loss_scaling" not in plan.constants:
        loss_scaling = _Coding(_LOSS_SCALING).read(named.get(_LOSS_SCALING), loss_scaling)
    groups = tuple(replace(group, values=_values_of(group, named, loss_scaling)) for group in plan.groups)
    return replace(plan, loss_scaling=loss_scaling, groups=groups)


def _values_of(group: Group, named: Mapping[str, Tensor], loss_scaling: float) -> dict[str, float]:
    values = dict(group.values)
    # The rate is written as a function of the dampening, and the weight decay as one of both.
    for value in sorted(values, key=_reading_order):
        if value not in group.constants:
            coding = _coding(value, group, values, loss_scaling)
            values[value] = coding.read(named.get(_specific(coding, group.parameters[0])), values[value])
    return values


def _reading_order(value: str) -> int:
    return {"lr": 1, "weight_decay": 2}.get(value, 0)


def _coding(value: str, group: Group, values: Mapping[str, float], loss_scaling: float) -> _Coding:
    if not isinstance(group.rule, SgdRule) or value not in ("lr", "weight_decay"):
        return _Coding(_NAMES[value])
    share = 1 - values["dampening"]
    if value == "lr":
        return _Coding("scaledLearningRate0", lambda lr: lr * share / loss_scaling, lambda w: w * loss_scaling / share)
    rate = values["lr"] * share
    return _Coding("weightDecayScaleFactor0", lambda decay: 1 - rate * decay, lambda factor: (1 - factor) / rate)


def _specific(coding: _Coding, parameter: str) -> str:
    return f"{coding.name}___specific___{parameter}"


def _number(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float32)
