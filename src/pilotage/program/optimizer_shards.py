"""Which instance updates which parameter, where each of them remembers only its share of the optimizer's state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pilotage.optim.rule import OptimizerPlan
from pilotage.program.layout import StateLayout

Broadcast = Callable[[Sequence[Tensor], int], None]
"""Overwrites tensors by those of one instance."""


@dataclass(frozen=True, kw_only=True)
class OptimizerShards:
    """The parameters that are shared out, each with the one instance that updates it."""

    owners: Mapping[str, int]
    instance: int
    broadcast: Broadcast

    def is_updated_here(self, parameter: str) -> bool:
        """Whether this instance updates a parameter: its own ones, and those that are not shared out."""
        return self.owners.get(parameter, self.instance) == self.instance

    def layout(self, layout: StateLayout) -> StateLayout:
        """The state without what other instances remember."""
        return replace(layout, slots={s: spec for s, spec in layout.slots.items() if self.is_updated_here(s.parameter)})

    def plan(self, plan: OptimizerPlan) -> OptimizerPlan:
        """The plan without what other instances update."""
        groups = [
            replace(each, parameters=tuple(filter(self.is_updated_here, each.parameters))) for each in plan.groups
        ]
        return replace(plan, groups=tuple(groups))

    @torch.no_grad()
    def broadcast_updates(self, parameters: Mapping[str, Tensor]) -> None:
        """Bring the new parameters of each instance to all others, in one message for each type."""
        messages: dict[tuple[int, torch.dtype, torch.device], list[Tensor]] = defaultdict(list)
        for name, owner in self.owners.items():
            messages[owner, parameters[name].dtype, parameters[name].device].append(parameters[name])
        for (owner, _, _), tensors in messages.items():
            flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
            self.broadcast([flat], owner)
            if owner != self.instance:
                pieces = flat.split([tensor.numel() for tensor in tensors])
                for tensor, piece in zip(tensors, pieces, strict=True):
                    tensor.copy_(piece.reshape(tensor.shape))


def assign_owners(elements: Mapping[str, int], instances: int, minimum: int) -> dict[str, int]:
    """An owner for each parameter of so many elements or more, so that all have about the same to remember."""
    loads = [0] * instances
    owners: dict[str, int] = {}
    for name in sorted((name for name in elements if elements[name] >= minimum), key=lambda name: -elements[name]):
        owner = loads.index(min(loads))
        owners[name] = owner
        loads[owner] += elements[name]
    return owners
