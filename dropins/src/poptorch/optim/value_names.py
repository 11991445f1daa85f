"""An optimizer's values under PopTorch's names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pilotage.engine import Group, OptimizerPlan, SgdRule

__all__ = ["divided_like", "from_ipu_param", "grouping", "to_ipu_param"]

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


def from_ipu_param(
    plan: OptimizerPlan, named: Mapping[str, Tensor], present: OptimizerPlan | None = None
) -> OptimizerPlan:
    """A plan with every changed variable value replaced; constants stay, and values that are missing stay too.

    Each parameter has its own values: groups are divided where these differ.
    """
    present = present or plan
    loss_scaling = plan.loss_scaling
    if "loss_scaling" not in plan.constants:
        if _LOSS_SCALING not in named:
            loss_scaling = present.loss_scaling
        loss_scaling = _Coding(_LOSS_SCALING).read(named.get(_LOSS_SCALING), loss_scaling)
    on_device = {name: group.values for group in present.groups for name in group.parameters}
    groups = [part for group in plan.groups for part in _divided(group, named, loss_scaling, on_device)]
    return replace(plan, loss_scaling=loss_scaling, groups=tuple(groups))


def divided_like(plan: OptimizerPlan, like: OptimizerPlan) -> OptimizerPlan:
    """The plan with its groups split like those of ``like``."""
    owners = {name: group for group in plan.groups for name in group.parameters}
    groups = [replace(owners[part.parameters[0]], parameters=part.parameters) for part in like.groups]
    return replace(plan, groups=tuple(groups))


def grouping(plan: OptimizerPlan) -> list[tuple[str, ...]]:
    """Which parameters share their values."""
    return [group.parameters for group in plan.groups]


def _divided(
    group: Group,
    named: Mapping[str, Tensor],
    loss_scaling: float,
    on_device: Mapping[str, Mapping[str, float]],
) -> Iterator[Group]:
    """The parts of a group that have the same values."""
    parts: dict[tuple[float, ...], list[str]] = {}
    for parameter in group.parameters:
        values = _values_of(group, parameter, named, loss_scaling, on_device[parameter])
        parts.setdefault(tuple(values[name] for name in group.values), []).append(parameter)
    for numbers, parameters in parts.items():
        values = dict(zip(group.values, numbers, strict=True))
        yield replace(group, parameters=tuple(parameters), values=values)


def _values_of(
    group: Group,
    parameter: str,
    named: Mapping[str, Tensor],
    loss_scaling: float,
    on_device: Mapping[str, float],
) -> dict[str, float]:
    values = dict(group.values)
    # The rate is written as a function of the dampening, and the weight decay as one of both.
    for value in sorted(values, key=_reading_order):
        if value not in group.constants:
            coding = _coding(value, group, values, loss_scaling)
            written = named.get(_specific(coding, parameter))
            values[value] = on_device[value] if written is None else coding.read(written, values[value])
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
