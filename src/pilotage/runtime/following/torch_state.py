"""The state of an optimizer in the form of torch's own ``optimizer.state``, and back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor

from pilotage.errors import OptionError
from pilotage.optim.own_step.rule import OwnStepRule
from pilotage.optim.rule import Group, OptimizerPlan
from pilotage.optim.sgd import SgdRule
from pilotage.program.layout import Counter, Slot
from pilotage.runtime.optimizer_state import OptimizerState
from pilotage.torch_private import DisableTorchFunctionSubclass

TorchState = Mapping[Tensor, Mapping[str, Any]]
"""The entries of torch's state for each parameter; SGD has no entry ``step``."""


def to_torch(
    state: OptimizerState, plan: OptimizerPlan, parameters: Mapping[str, Tensor], unused: Collection[str] = ()
) -> dict[Tensor, Any]:
    """What torch's optimizer would keep for each parameter: nothing before the first update, nor for unused ones."""
    if not state.updates:
        return {}
    found: dict[Tensor, dict[str, Any]] = {}
    for group in plan.groups:
        for name in group.parameters:
            kept: dict[str, Any] = {
                slot: state.slots[Slot(slot, name)] for slot in group.rule.slots if Slot(slot, name) in state.slots
            }
            if not kept or name in unused:
                continue
            if isinstance(group.rule, OwnStepRule):
                kept = {slot: group.rule.as_torch_keeps(slot, parameters[name], kept[slot]) for slot in kept}
            elif not _counts_no_steps(group):
                kept["step"] = torch.tensor(float(state.updates))
            found[parameters[name]] = kept
    return found


def from_torch(
    given: TorchState,
    plan: OptimizerPlan,
    parameters: Mapping[str, Tensor],
    kept: Collection[Slot],
    counters: Mapping[Counter, Tensor],
) -> OptimizerState:
    """The state of a program from what torch's optimizer keeps; where that keeps nothing, as before the first update.

    ``kept`` are the tensors that the program has, none for a parameter that the loss does not depend on, and
    ``counters`` what it counts at present.
    """
    updates, loss_scale = float(counters[Counter.UPDATES]), float(counters.get(Counter.LOSS_SCALE, 1.0))
    slots: dict[Slot, Tensor] = {}
    steps: set[float] = set()
    for group in plan.groups:
        for name in group.parameters:
            entries = {key: value for key, value in (given.get(parameters[name]) or {}).items() if value is not None}
            own = [slot for slot in group.rule.slots if Slot(slot, name) in kept]
            if not own:
                continue
            if unknown := sorted(entries.keys() - {*own, "step"}):
                raise OptionError(
                    f"The state of the optimizer has {unknown[0]} for {name}, which {group.rule.kind} does not keep "
                    "with the present settings. Load a state of the same optimizer with the same settings."
                )
            for slot in own:
                slots[Slot(slot, name)] = _tensor(entries.get(slot), group, slot, parameters[name])
            steps.add(_steps(group, entries, updates))
    if len(steps) > 1:
        raise OptionError(
            f"The state of the optimizer counts different steps for its parameters ({sorted(steps)}), and a program "
            "counts them for all parameters together. Load or clear the state of all parameters."
        )
    return OptimizerState(slots=slots, updates=steps.pop() if steps else updates, loss_scale=loss_scale)


def _tensor(given: Any, group: Group, slot: str, parameter: Tensor) -> Tensor:
    if given is None:
        # Only the shape and type are needed: the newer values may be on the device.
        with torch.no_grad(), DisableTorchFunctionSubclass():
            given = group.rule.initial(slot, parameter.detach())
    tensor = given if isinstance(given, Tensor) else torch.tensor(float(given), dtype=torch.float64)
    return tensor.detach().to("cpu", copy=True)


def _counts_no_steps(group: Group) -> bool:
    return isinstance(group.rule, SgdRule)


def _steps(group: Group, entries: Mapping[str, Any], updates: float) -> float:
    """The number of updates of a parameter."""
    if isinstance(group.rule, OwnStepRule):
        # This optimizer counts in its own state.
        return max(1.0, updates) if entries else 0.0
    if not _counts_no_steps(group):
        return float(entries.get("step", 0.0))
    if not group.values["dampening"]:
        # Only dampening makes a difference between the first update and others.
        return max(1.0, updates)
    return max(1.0, updates) if entries else 0.0
