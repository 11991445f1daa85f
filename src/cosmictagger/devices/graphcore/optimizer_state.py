"""Converting optimizer states between PopTorch's form and torch's, so that a run can change devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from cosmictagger.configuration.choices import OptimizerKind

SLOTS = {
    OptimizerKind.adam: {"Accl1": "exp_avg", "Accl2": "exp_avg_sq"},
    OptimizerKind.rmsprop: {"Accl1": "square_avg"},
    OptimizerKind.sgd: {},
    OptimizerKind.lamb: {"Accl1": "exp_avg", "Accl2": "exp_avg_sq"},
}
"""PopTorch's names of an optimizer's tensors and torch's."""

STEP = "Step"
SEPARATOR = "___"


def as_torch(state: Mapping[str, Any], kind: OptimizerKind, module: nn.Module, updates: int) -> dict[str, Any]:
    """Convert PopTorch's form to that of ``torch.optim.Optimizer.state_dict``."""
    numbers = {name: number for number, (name, _) in enumerate(module.named_parameters())}
    entries: dict[int, dict[str, Tensor]] = {
        number: {"step": torch.tensor(float(updates))} for number in numbers.values()
    }
    for name, tensor in (state["ipu_state"] or {}).items():
        slot, _, parameter = name.partition(SEPARATOR)
        if slot in SLOTS[kind] and parameter in numbers:
            entries[numbers[parameter]][SLOTS[kind][slot]] = tensor
    groups = [{key: value for key, value in group.items() if key != "params"} for group in state["param_groups"]]
    return {"state": entries, "param_groups": [{**groups[0], "params": list(range(len(numbers)))}]}


def as_poptorch(
    state: Mapping[str, Any], own: Mapping[str, Any], kind: OptimizerKind, module: nn.Module
) -> dict[str, Any]:
    """Convert torch's form to PopTorch's; ``own`` is the current state of the optimizer that loads it."""
    names = [name for name, _ in module.named_parameters()]
    optimizer_state: dict[str, Tensor] = {}
    for number, entries in state["state"].items():
        name = names[int(number)]
        for ours, theirs in SLOTS[kind].items():
            optimizer_state[f"{ours}{SEPARATOR}{name}"] = entries[theirs]
        if kind in (OptimizerKind.adam, OptimizerKind.lamb):
            optimizer_state[f"{STEP}{SEPARATOR}{name}"] = torch.as_tensor(float(entries["step"]))
    return {**own, "ipu_state": optimizer_state, "ipu_param": {}}


def has_stepped(state: Mapping[str, Any]) -> bool:
    """Whether an optimizer's state shows that it updated weights on a device."""
    optimizer_state = state.get("ipu_state") or {}
    return any(bool(tensor.any()) for tensor in optimizer_state.values())
