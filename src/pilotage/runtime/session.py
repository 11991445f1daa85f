"""A compiled program, attached to its device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pilotage.backends.base import Executable
from pilotage.backends.registry import Choice
from pilotage.backends.state import DeviceState
from pilotage.backends.streams import RandomStreams, seeds_for
from pilotage.optim.rule import OptimizerPlan
from pilotage.options.execution import Execution
from pilotage.program.layout import Slot
from pilotage.program.program import Program
from pilotage.program.schedule import Schedule


@dataclass(frozen=True, kw_only=True)
class OptimizerState:
    """What an optimizer has learnt, on the host."""

    slots: dict[Slot, Tensor]
    updates: float


@dataclass(kw_only=True)
class Session:
    """Everything that exists between compiling a program and destroying it."""

    choice: Choice
    program: Program
    schedule: Schedule
    executable: Executable
    state: DeviceState | None
    """None while the program is detached from its device."""

    streams: RandomStreams
    parked: OptimizerState | None = None
    """The optimizer's state while the program is detached."""

    @property
    def device(self) -> str:
        """The device by name."""
        return str(self.choice.backend.device)

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run one host call on inputs that are on the host."""
        assert self.state is not None
        device = self.choice.backend.device
        moved = [tensor.to(device, non_blocking=True) for tensor in inputs]
        outputs = [output.to("cpu") for output in self.executable.run(self.state, self.streams, moved)]
        for position in self.program.written_inputs:
            if moved[position] is not inputs[position]:
                inputs[position].copy_(moved[position])
        return outputs

    def export_optimizer(self) -> OptimizerState | None:
        """A copy of the optimizer's state on the host."""
        if not self.program.trains or self.state is None:
            return self.parked
        slots = {slot: tensor.to("cpu", copy=True) for slot, tensor in self.state.slots.items()}
        return OptimizerState(slots=slots, updates=float(self.state.counter))

    @torch.no_grad()
    def import_optimizer(self, saved: OptimizerState) -> None:
        """Put an optimizer's state on the device; slots that it does not know keep what they have."""
        assert self.state is not None
        for slot, tensor in self.state.slots.items():
            if slot in saved.slots:
                tensor.copy_(saved.slots[slot])
        self.state.counter.fill_(saved.updates)


def new_state(program: Program, choice: Choice, execution: Execution, plan: OptimizerPlan | None) -> DeviceState:
    """Fresh state for a program; weights are still to be loaded."""
    batching = execution.batching
    pools = batching.micro_batches_per_update > 1
    return DeviceState(program.layout, plan, choice.backend.device, batching.replicas, pools)


def new_streams(choice: Choice, execution: Execution) -> RandomStreams:
    """The random streams that the options ask for."""
    return RandomStreams(choice.backend.device, seeds_for(execution.random_seed, execution.batching.replicas))
