"""Run update rules eagerly, on parameters with gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import Any

import torch
from torch import Tensor

from pilotage.optim.rule import UpdateRule, Value
from pilotage.optim.workspace import open_workspace


def loss_of(closure: Callable[[], Any] | None) -> Any:
    """The result of the closure of an optimizer's step, run with gradients enabled; None without a closure."""
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()


def update_eagerly(
    rule: UpdateRule,
    parameters: Iterable[Tensor],
    state: Mapping[Tensor, MutableMapping[str, Any]],
    values: Mapping[str, Value],
) -> None:
    """Update parameters from their ``grad``, with slots kept in a torch optimizer's ``state`` under torch's names."""
    for parameter in parameters:
        if parameter.grad is None:
            continue
        kept = state[parameter]
        _add_missing_state(kept, rule, parameter)
        slots = {slot: [kept[slot]] for slot in rule.slots}
        work = open_workspace([parameter], [parameter.grad], slots, maximize=rule.maximize)
        rule.apply(work, kept["step"].double(), values)
        kept["step"] += 1


def _add_missing_state(kept: MutableMapping[str, Any], rule: UpdateRule, parameter: Tensor) -> None:
    # torch's SGD keeps a momentum buffer but no step count; a buffer means that the first update is done.
    kept.setdefault("step", torch.tensor(1.0 if kept else 0.0))
    for slot in rule.slots:
        if kept.get(slot) is None:
            kept[slot] = rule.initial(slot, parameter)
