"""The state of an optimizer on the host."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pilotage.execution.spread_state import ProgramState
from pilotage.execution.state import OPTIMIZER
from pilotage.program.layout import Counter, Slot


@dataclass(frozen=True, kw_only=True)
class OptimizerState:
    """What an optimizer keeps from update to update."""

    slots: dict[Slot, Tensor]
    updates: float
    loss_scale: float = 1.0
    """The present scale of automatic loss scaling."""

    @classmethod
    def of(cls, state: ProgramState) -> OptimizerState:
        """A copy of the optimizer's state of a program."""
        slots = {slot: tensor.to("cpu", copy=True) for slot, tensor in state.slots.items()}
        numbers = {counter: float(number) for counter, number in state.counters.items()}
        return cls(slots=slots, updates=numbers[Counter.UPDATES], loss_scale=numbers.get(Counter.LOSS_SCALE, 1.0))

    @torch.no_grad()
    def load_into(self, state: ProgramState) -> None:
        """Copy it to the devices of a program."""
        for slot, tensor in state.slots.items():
            if slot in self.slots:
                tensor.copy_(self.slots[slot])
        counters = state.counters
        counters[Counter.UPDATES].fill_(self.updates)
        if Counter.LOSS_SCALE in counters:
            counters[Counter.LOSS_SCALE].fill_(self.loss_scale)
        state.refresh_copies()
        state.repair(OPTIMIZER)
