"""Update rules run at once, on parameters that hold their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import Any

import torch
from torch import Tensor

from pilotage.optim.rule import UpdateRule, Value
from pilotage.optim.workspace import open_workspace


def loss_of(closure: Callable[[], Any] | None) -> Any:
    """What the closure of an optimizer's step returns, which needs gradients; None without one."""
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
        _fill_in(kept, rule, parameter)
        slots = {slot: [kept[slot]] for slot in rule.slots}
        work = open_workspace([parameter], [parameter.grad], slots, maximize=rule.maximize)
        rule.apply(work, kept["step"].double(), values)
        kept["step"] += 1


def _fill_in(kept: MutableMapping[str, Any], rule: UpdateRule, parameter: Tensor) -> None:
    # torch's SGD keeps a momentum buffer but no count; where there is a buffer, the first update is over.
    kept.setdefault("step", torch.tensor(1.0 if kept else 0.0))
    for slot in rule.slots:
        if kept.get(slot) is None:
            kept[slot] = rule.initial(slot, parameter)
