"""The state of a program that runs on several devices."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import torch
from torch import Tensor

from pilotage.execution.state import NOTHING, DeviceState
from pilotage.optim.rule import OptimizerPlan
from pilotage.program.layout import Counter, Slot

_Name = TypeVar("_Name", str, Slot, Counter)


class SpreadState:
    """The states of several devices, seen as one.

    Devices may have copies of the same weights (replicas) or different weights (stages). If several have a copy, that
    of the first one is used.
    """

    optimizer_shards = None
    """The optimizer's state cannot also be divided among instances yet."""

    def __init__(self, parts: Sequence[DeviceState]) -> None:
        self.parts = tuple(parts)
        """The state on each device."""
        self.updates_of_call = 0
        """How many updates the current call has completed."""

    @property
    def replicas(self) -> Collection[int]:
        """The replicas of all devices."""
        return sorted({replica for part in self.parts for replica in part.replicas})

    @property
    def parameters(self) -> dict[str, Tensor]:
        """The weights by name."""
        return _merged(part.parameters for part in self.parts)

    @property
    def slots(self) -> dict[Slot, Tensor]:
        """What the optimizer keeps for each parameter."""
        return _merged(part.slots for part in self.parts)

    @property
    def counters(self) -> dict[Counter, Tensor]:
        """What the program counts."""
        return _merged(part.counters for part in self.parts)

    def buffers(self, replica: int = 0) -> dict[str, Tensor]:
        """A replica's buffers by name."""
        return _merged(part.buffers(replica) for part in self.parts if replica in part.replicas)

    def everything(self) -> list[Tensor]:
        """All tensors that a call may change, on all devices."""
        return [tensor for part in self.parts for tensor in part.everything()]

    def load_weights(self, parameters: Mapping[str, Tensor], buffers: Mapping[str, Tensor]) -> None:
        """Copy weights and buffers from the host; all replicas get the same buffers."""
        for part in self.parts:
            part.load_weights(parameters, buffers)

    def load_parameters(self, parameters: Mapping[str, Tensor]) -> None:
        """Copy some parameters from the host."""
        for part in self.parts:
            part.load_parameters(parameters)

    def load_buffers(self, buffers: Mapping[str, Tensor]) -> None:
        """Copy some or all buffers from the host to every replica."""
        for part in self.parts:
            part.load_buffers(buffers)

    def load_values(self, plan: OptimizerPlan) -> None:
        """Copy the optimizer's current values."""
        for part in self.parts:
            part.load_values(plan)

    @property
    def torn(self) -> frozenset[str]:
        """What an interrupted update may have left inconsistent on any device, and was not reloaded since."""
        return frozenset[str]().union(*(part.torn for part in self.parts))

    def repair(self, section: str) -> None:
        """Note that a section of the state was loaded again on all devices."""
        for part in self.parts:
            part.repair(section)

    def begin_update(self) -> None:
        """Note that an update begins: until `end_update` the state is inconsistent."""
        for part in self.parts:
            part.torn = part.all_parts

    def end_update(self) -> None:
        """Note that all devices have completed the update."""
        for part in self.parts:
            part.torn = NOTHING

    def forget_gradients(self) -> None:
        """Clear the pooled gradients."""
        for part in self.parts:
            part.forget_gradients()

    @torch.no_grad()
    def refresh_copies(self) -> None:
        """Refresh the copies of weights, slots and counters after an outside write to the first device."""
        parameters, slots, counters = self.parameters, self.slots, self.counters
        for part in self.parts[1:]:
            _copy(part.parameters, parameters)
            _copy(part.slots, slots)
            _copy(part.counters, counters)


ProgramState: TypeAlias = DeviceState | SpreadState
"""The state of a program, on one device or on several."""


def _merged(parts: Iterable[Mapping[_Name, Tensor]]) -> dict[_Name, Tensor]:
    merged: dict[_Name, Tensor] = {}
    for part in parts:
        for name, tensor in part.items():
            merged.setdefault(name, tensor)
    return merged


def _copy(targets: Mapping[_Name, Tensor], sources: Mapping[_Name, Tensor]) -> None:
    for name, target in targets.items():
        if target is not sources[name]:
            target.copy_(sources[name])
