"""Which tensors a program keeps from step to step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

import torch
from torch import Tensor, nn

from pilotage.optim.rule import Group, OptimizerPlan, Value
from pilotage.program.specification import TensorSpec

SCALAR = TensorSpec((), (), torch.float64)
"""Counters and values: exact to the last bit of what Python's numbers give."""


class Section(Enum):
    """A kind of state; the tensors of one section stand together in a program's arguments."""

    PARAMETERS = "parameters"
    BUFFERS = "buffers"
    SLOTS = "slots"
    """What the optimizer remembers of each parameter."""
    COUNTERS = "counters"
    """The number of updates done."""
    VALUES = "values"
    """Learning rate and the like, where they may change."""
    GRADIENTS = "gradients"
    """Pooled gradients, views of one flat buffer."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One thing that the optimizer remembers of one parameter."""

    name: str
    parameter: str


@dataclass(frozen=True, slots=True)
class VariableValue:
    """A value of the optimizer that may change from call to call; group None means all groups."""

    group: int | None
    name: str


@dataclass(frozen=True, kw_only=True)
class StateLayout:
    """The names and specifications of a program's state, in the order of its arguments."""

    parameters: Mapping[str, TensorSpec]
    buffers: Mapping[str, TensorSpec]
    trained: tuple[str, ...] = ()
    """Parameters that the optimizer updates."""

    slots: Mapping[Slot, TensorSpec] = field(default_factory=dict)
    values: tuple[VariableValue, ...] = ()
    accumulation_type: torch.dtype = torch.float32
    """What gradients are pooled in."""

    @classmethod
    def of(cls, module: nn.Module, plan: OptimizerPlan | None) -> StateLayout:
        """The state of a module, and of its optimizer if it is trained."""
        parameters = dict(module.named_parameters())
        specifications = {name: TensorSpec.of(parameter) for name, parameter in parameters.items()}
        buffers = {name: TensorSpec.of(buffer) for name, buffer in module.named_buffers()}
        if plan is None:
            return cls(parameters=specifications, buffers=buffers)
        trained = [
            (group, name) for group in plan.groups for name in group.parameters if parameters[name].requires_grad
        ]
        return cls(
            parameters=specifications,
            buffers=buffers,
            trained=tuple(name for _, name in trained),
            slots={
                Slot(slot, name): _slot_spec(group, slot, specifications[name])
                for group, name in trained
                for slot in group.rule.slots
            },
            values=variable_values(plan),
            accumulation_type=plan.accumulation_type,
        )

    def section(self, section: Section) -> list[TensorSpec]:
        """What the tensors of a section look like."""
        match section:
            case Section.PARAMETERS:
                return list(self.parameters.values())
            case Section.BUFFERS:
                return list(self.buffers.values())
            case Section.SLOTS:
                return list(self.slots.values())
            case Section.COUNTERS:
                return [SCALAR]
            case Section.VALUES:
                return [SCALAR for _ in self.values]
            case Section.GRADIENTS:
                return [replace(self.parameters[name].dense, dtype=self.accumulation_type) for name in self.trained]


def _slot_spec(group: Group, slot: str, parameter: TensorSpec) -> TensorSpec:
    return TensorSpec.of(group.rule.initial(slot, parameter.empty(torch.device("meta"))))


def variable_values(plan: OptimizerPlan) -> tuple[VariableValue, ...]:
    """The values of an optimizer that are not compiled in."""
    shared = [VariableValue(None, name) for name in ("loss_scaling", "max_gradient_norm") if name not in plan.constants]
    grouped = [
        VariableValue(position, name)
        for position, group in enumerate(plan.groups)
        for name in group.values
        if name not in group.constants
    ]
    return (*shared, *grouped)


def number_of(plan: OptimizerPlan, value: VariableValue) -> float:
    """The present number behind a variable value."""
    if value.group is None:
        return float(getattr(plan, value.name))
    return float(plan.groups[value.group].values[value.name])


def group_values(group: Group, position: int, variables: Mapping[VariableValue, Tensor]) -> dict[str, Value]:
    """What a rule is given: tensors for the values that may change, numbers for those that may not."""
    return {name: variables.get(VariableValue(position, name), number) for name, number in group.values.items()}


def shared_value(plan: OptimizerPlan, name: str, variables: Mapping[VariableValue, Tensor]) -> Value:
    """A value that all groups share, as a tensor if it may change."""
    return variables.get(VariableValue(None, name), float(getattr(plan, name)))
