"""Optimizer state sharding: each instance updates some of the parameters and holds only their optimizer state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pilotage.optim.rule import OptimizerPlan
from pilotage.program.layout import StateLayout

Broadcast = Callable[[Sequence[Tensor], int], None]
"""Overwrites tensors with those of one instance."""


@dataclass(frozen=True, kw_only=True)
class OptimizerShards:
    """The sharded parameters, each with the instance that updates it."""

    owners: Mapping[str, int]
    instance: int
    broadcast: Broadcast

    def is_updated_here(self, parameter: str) -> bool:
        """Whether this instance updates a parameter: it owns it, or it is not sharded."""
        return self.owners.get(parameter, self.instance) == self.instance

    def layout(self, layout: StateLayout) -> StateLayout:
        """The layout without the slots of other instances."""
        return replace(layout, slots={s: spec for s, spec in layout.slots.items() if self.is_updated_here(s.parameter)})

    def plan(self, plan: OptimizerPlan) -> OptimizerPlan:
        """The plan without the parameters of other instances."""
        groups = [
            replace(each, parameters=tuple(filter(self.is_updated_here, each.parameters))) for each in plan.groups
        ]
        return replace(plan, groups=tuple(groups))

    @torch.no_grad()
    def broadcast_updates(self, parameters: Mapping[str, Tensor]) -> None:
        """Broadcast the updated parameters of each instance, in one message for each dtype and device."""
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
    """Assign each parameter with at least ``minimum`` elements to an instance, balancing the load."""
    loads = [0] * instances
    owners: dict[str, int] = {}
    for name in sorted((name for name in elements if elements[name] >= minimum), key=lambda name: -elements[name]):
        owner = loads.index(min(loads))
        owners[name] = owner
        loads[owner] += elements[name]
    return owners
