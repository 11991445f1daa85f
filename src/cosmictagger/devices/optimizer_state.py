"""Converting optimizer states between the engine's form and torch's, so that a run can change devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn


def as_torch(optimizer_state: Mapping[str, Any], module: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Convert the engine's slots to the form of ``torch.optim.Optimizer.state_dict``."""
    groups = optimizer.state_dict()["param_groups"]
    names = _names(module, optimizer)
    state: dict[int, dict[str, Tensor]] = {
        number: {"step": torch.tensor(float(optimizer_state["updates"]))} for number in range(len(names))
    }
    numbers = {name: number for number, name in enumerate(names)}
    for name, tensor in optimizer_state["slots"].items():
        slot, parameter = name.split("/", 1)
        state[numbers[parameter]][slot] = tensor
    return {"state": state, "param_groups": groups}


def as_slots(state: Mapping[str, Any], module: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Convert torch's form to the engine's slots."""
    names = _names(module, optimizer)
    slots = {
        f"{slot}/{names[number]}": tensor
        for number, entries in state["state"].items()
        for slot, tensor in entries.items()
        if slot != "step"
    }
    steps = [float(entries["step"]) for entries in state["state"].values()]
    return {"slots": slots, "updates": max(steps, default=0.0), "loss_scale": 1.0}


def _names(module: nn.Module, optimizer: torch.optim.Optimizer) -> list[str]:
    """The names of the optimizer's parameters, in its order."""
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    return [names[id(parameter)] for group in optimizer.param_groups for parameter in group["params"]]
