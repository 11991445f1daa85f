"""An optimizer's state under PopTorch's names."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from pilotage.engine import AdamRule, LambRule, OptimizerPlan, OptimizerState, RmspropRule, SgdRule, Slot
from poptorch._logging import logger

__all__ = ["from_ipu_state", "ipu_state_names", "to_ipu_state"]

_STEP = "Step"

_SLOTS: dict[type, dict[str, str]] = {
    SgdRule: {"momentum_buffer": "Accl1"},
    AdamRule: {"exp_avg": "Accl1", "exp_avg_sq": "Accl2"},
    LambRule: {"exp_avg": "Accl1", "exp_avg_sq": "Accl2"},
    RmspropRule: {"square_avg": "Accl1", "grad_avg": "Accl2", "momentum_buffer": "Accl3"},
}
_COUNTING = (AdamRule, LambRule)
"""Rules whose updates are counted for each parameter."""


def to_ipu_state(plan: OptimizerPlan, state: OptimizerState) -> dict[str, Tensor]:
    """The slots of an optimizer, with the number of updates of each parameter if the rule counts them."""
    named = {}
    for group in plan.groups:
        prefixes = _SLOTS[type(group.rule)]
        for parameter in group.parameters:
            for slot in group.rule.slots:
                named[f"{prefixes[slot]}___{parameter}"] = state.slots[Slot(slot, parameter)]
            if isinstance(group.rule, _COUNTING):
                named[f"{_STEP}___{parameter}"] = torch.tensor(state.updates, dtype=torch.float32)
    return named


def ipu_state_names(plan: OptimizerPlan) -> set[str]:
    """The names of an optimizer's whole state; an instance may hold only a part of it."""
    found = set()
    for group in plan.groups:
        prefixes = [_SLOTS[type(group.rule)][slot] for slot in group.rule.slots]
        prefixes += [_STEP] if isinstance(group.rule, _COUNTING) else []
        found |= {f"{prefix}___{parameter}" for prefix in prefixes for parameter in group.parameters}
    return found


def from_ipu_state(plan: OptimizerPlan, named: Mapping[str, Tensor], current: OptimizerState) -> OptimizerState:
    """An optimizer's state, updated with the named values."""
    slots, updates = dict(current.slots), current.updates
    counts = {float(tensor) for name, tensor in named.items() if name.startswith(f"{_STEP}___")}
    if len(counts) > 1:
        logger.warning(
            "The loaded %s___ of the parameters differ (%g to %g), but a program counts the updates of all parameters "
            "together: training continues with the largest.",
            _STEP,
            min(counts),
            max(counts),
        )
    for group in plan.groups:
        prefixes = _SLOTS[type(group.rule)]
        for parameter in group.parameters:
            found = {slot: named.get(f"{prefixes[slot]}___{parameter}") for slot in group.rule.slots}
            slots |= {Slot(slot, parameter): tensor for slot, tensor in found.items() if tensor is not None}
            if f"{_STEP}___{parameter}" in named:
                updates = max(counts)
            elif isinstance(group.rule, SgdRule) and any(t is not None and bool(t.any()) for t in found.values()):
                # A nonzero momentum buffer means that the first update, which is not dampened, is over.
                updates = max(updates, 1.0)
    return OptimizerState(slots=slots, updates=updates)
