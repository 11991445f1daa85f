"""The state of an optimizer on the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from pilotage.errors import OptionError
from pilotage.execution.spread_state import ProgramState
from pilotage.execution.state import OPTIMIZER
from pilotage.optim.rule import OptimizerPlan
from pilotage.program.layout import Counter, Slot


@dataclass(frozen=True, kw_only=True)
class OptimizerState:
    """The state of an optimizer between updates."""

    slots: dict[Slot, Tensor]
    updates: float
    loss_scale: float = 1.0
    """The current scale of automatic loss scaling."""

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


def refuse_another_kind(saved: str | None, plan: OptimizerPlan | None, where: str) -> None:
    """Raise if a state belongs to another kind of optimizer; older states do not say which (None)."""
    if plan is None or saved in (None, plan.kind):
        return
    raise OptionError(
        f"{where} belongs to {saved}, and this model is trained with {plan.kind}: the state of one is wrong for the "
        f"other. Give the model the {saved} optimizer that it was trained with. To change the optimizer, continue with "
        f"{saved} and then wrap the module again with {plan.kind}, which starts with fresh state."
    )


def refuse_other_slots(state: OptimizerState, plan: OptimizerPlan, present: Mapping[Slot, Tensor]) -> None:
    """Raise if a state has other tensors than the optimizer keeps; ``present`` are those that this process has."""
    if not state.slots and not state.updates:
        # Saved before the first update.
        return
    known = {Slot(slot, name) for group in plan.groups for slot in group.rule.slots for name in group.parameters}
    problems = [
        *(f"{slot.name} of {slot.parameter} is missing" for slot in present if slot not in state.slots),
        *(f"{slot.name} of {slot.parameter} is not used" for slot in state.slots if slot not in known),
        *(
            f"{slot.name} of {slot.parameter} is {tuple(state.slots[slot].shape)} instead of {tuple(tensor.shape)}"
            for slot, tensor in present.items()
            if slot in state.slots and state.slots[slot].shape != tensor.shape
        ),
    ]
    if problems:
        more = f", and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise OptionError(
            f"The state of the optimizer does not fit the {plan.kind} that trains this model: "
            f"{'; '.join(problems[:3])}{more}. Build the model and its optimizer as they were when it was saved."
        )
