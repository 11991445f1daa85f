"""The tensors that a program keeps from step to step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import torch
from torch import Tensor, nn

from pilotage.optim.rule import Group, OptimizerPlan, Value
from pilotage.options.choices import Pooling
from pilotage.program.specification import TensorSpec, contiguous_strides

SCALAR = TensorSpec((), (), torch.float64)
"""Counters and values: float64, as exact as Python's numbers."""


class Section(Enum):
    """A kind of state; the tensors of a section are consecutive arguments of a program."""

    PARAMETERS = "parameters"
    BUFFERS = "buffers"
    SLOTS = "slots"
    """Optimizer state of each parameter, such as momentum."""
    COUNTERS = "counters"
    """Numbers that the program keeps, such as the count of updates."""
    VALUES = "values"
    """Hyperparameters that may change, such as the learning rate."""
    GRADIENTS = "gradients"
    """Pooled gradients, views of one flat buffer."""

    # Enum's own hash is slow Python code, and every step of every call looks up members.
    __hash__ = object.__hash__


class Counter(Enum):
    """A number that the program itself keeps."""

    UPDATES = "updates"
    """The number of updates."""
    POOLED = "pooled"
    """The number of micro-batches in the pool, if it is a running mean."""
    LOSS_SCALE = "loss_scale"
    """The factor of automatic loss scaling."""

    @property
    def initial(self) -> float:
        """The value before the first step."""
        return 1.0 if self is Counter.LOSS_SCALE else 0.0


@dataclass(frozen=True, slots=True)
class ReplicaGroups:
    """Which replicas share a copy of a parameter."""

    of_replica: tuple[int, ...]
    """The copy that each replica uses."""

    @property
    def count(self) -> int:
        """How many copies there are."""
        return max(self.of_replica) + 1

    @property
    def members(self) -> int:
        """How many replicas use the same copy."""
        return len(self.of_replica) // self.count


@dataclass(frozen=True, slots=True)
class Slot:
    """One optimizer state tensor of one parameter."""

    name: str
    parameter: str


@dataclass(frozen=True, slots=True)
class VariableValue:
    """A hyperparameter that may change from call to call; group None means all groups."""

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
    """The type that gradients are pooled in."""

    counters: tuple[Counter, ...] = (Counter.UPDATES,)
    replica_groups: Mapping[str, ReplicaGroups] = field(default_factory=dict)
    """Parameters with several copies, along a leading dimension that no replica sees."""

    slots_on_host: int | None = None
    """Slots with at least this many elements stay in host memory; None keeps all with the parameters."""

    @classmethod
    def of(
        cls,
        module: nn.Module,
        plan: OptimizerPlan | None,
        *,
        pooling: Pooling = Pooling.POST,
        replica_groups: Mapping[str, ReplicaGroups] | None = None,
    ) -> StateLayout:
        """The state of a module, and of its optimizer if it is trained."""
        replica_groups = replica_groups or {}
        parameters = dict(module.named_parameters())
        specifications = {
            name: _copy_of(TensorSpec.of(parameter)) if name in replica_groups else TensorSpec.of(parameter)
            for name, parameter in parameters.items()
        }
        buffers = {name: TensorSpec.of(buffer) for name, buffer in module.named_buffers()}
        if plan is None:
            return cls(parameters=specifications, buffers=buffers, replica_groups=replica_groups)
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
            accumulation_type=_pool_type(plan, [specifications[name] for _, name in trained]),
            counters=_counters(plan, pooling),
            replica_groups=replica_groups,
        )

    def is_on_host(self, slot: Slot) -> bool:
        """Whether a slot stays on the host between updates."""
        return self.slots_on_host is not None and self.slots[slot].elements >= self.slots_on_host

    def section(self, section: Section, *, whole: bool = False) -> list[TensorSpec]:
        """The tensors of a section: as one replica sees them, or whole, with all copies of grouped parameters."""
        match section:
            case Section.BUFFERS:
                return list(self.buffers.values())
            case Section.COUNTERS:
                return [SCALAR for _ in self.counters]
            case Section.VALUES:
                return [SCALAR for _ in self.values]
            case _:
                owned = self._owned(section)
                return [
                    self._whole(name, spec) if whole and name in self.replica_groups else spec for name, spec in owned
                ]

    def owners(self, section: Section) -> list[str]:
        """The parameter of each tensor of a section; empty for buffers, counters and values."""
        return [name for name, _ in self._owned(section)]

    def _owned(self, section: Section) -> list[tuple[str, TensorSpec]]:
        match section:
            case Section.PARAMETERS:
                return list(self.parameters.items())
            case Section.SLOTS:
                return [(slot.parameter, spec) for slot, spec in self.slots.items()]
            case Section.GRADIENTS:
                return [
                    (name, replace(self.parameters[name].dense, dtype=self.accumulation_type)) for name in self.trained
                ]
            case _:
                return []

    def _whole(self, name: str, copy: TensorSpec) -> TensorSpec:
        shape = (self.replica_groups[name].count, *copy.shape)
        return TensorSpec(shape, contiguous_strides(shape), copy.dtype)


def _counters(plan: OptimizerPlan, pooling: Pooling) -> tuple[Counter, ...]:
    running = (Counter.POOLED,) if pooling is Pooling.RUNNING else ()
    scaling = (Counter.LOSS_SCALE,) if plan.automatic_loss_scaling else ()
    return (Counter.UPDATES, *running, *scaling)


def _copy_of(whole: TensorSpec) -> TensorSpec:
    return TensorSpec(whole.shape[1:], contiguous_strides(whole.shape[1:]), whole.dtype)


def _slot_spec(group: Group, slot: str, parameter: TensorSpec) -> TensorSpec:
    return TensorSpec.of(group.rule.initial(slot, parameter.empty(torch.device("meta"))))


def _pool_type(plan: OptimizerPlan, trained: Sequence[TensorSpec]) -> torch.dtype:
    """The type that gradients are pooled in: float64 if any parameter has it, to keep its digits."""
    has_doubles = any(specification.dtype == torch.float64 for specification in trained)
    return torch.float64 if has_doubles and plan.accumulation_type == torch.float32 else plan.accumulation_type


def variable_values(plan: OptimizerPlan) -> tuple[VariableValue, ...]:
    """The hyperparameters that are not compiled into the program."""
    shared = [VariableValue(None, name) for name in ("loss_scaling", "max_gradient_norm") if name not in plan.constants]
    grouped = [
        VariableValue(position, name)
        for position, group in enumerate(plan.groups)
        for name in group.values
        if name not in group.constants
    ]
    return (*shared, *grouped)


def number_of(plan: OptimizerPlan, value: VariableValue) -> float:
    """The current number of a variable value."""
    if value.group is None:
        return float(getattr(plan, value.name))
    return float(plan.groups[value.group].values[value.name])


def group_values(group: Group, position: int, variables: Mapping[VariableValue, Tensor]) -> dict[str, Value]:
    """The values of a rule: tensors if they may change, numbers otherwise."""
    return {name: variables.get(VariableValue(position, name), number) for name, number in group.values.items()}


def shared_value(plan: OptimizerPlan, name: str, variables: Mapping[VariableValue, Tensor]) -> Value:
    """A value that all groups share, as a tensor if it may change."""
    return variables.get(VariableValue(None, name), float(getattr(plan, name)))
