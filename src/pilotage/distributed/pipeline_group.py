"""The processes of one instance, one per pipeline stage."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from pilotage.distributed.environments import world_from
from pilotage.distributed.groups import groups_of, new_groups
from pilotage.distributed.peers import Peers, broadcast_tensors
from pilotage.distributed.values import Value, gather_values
from pilotage.distributed.world import World
from pilotage.options.environment import exchange_timeout


@dataclass(frozen=True, kw_only=True)
class PipelineGroup:
    """The collective operations of the stages of an instance.

    Every operation is collective: all stages must call it. They run the same script, so they do so in the same order.
    """

    peers: Peers
    """The whole world."""

    _cards: list[dist.ProcessGroup | None] = field(default_factory=list, repr=False)
    """The group of the cards, once created; None if they cannot communicate directly."""

    kind = "Stage"

    @property
    def world(self) -> World:
        """The whole world."""
        return self.peers.world

    @property
    def stage(self) -> int:
        """The stage of this process."""
        return self.world.stage or 0

    @property
    def stages(self) -> int:
        """The number of stages."""
        return self.world.stages_per_replica

    def wait_for_all(self) -> None:
        """Wait for all processes, some of which may still be compiling."""
        self.peers.wait_for_all()

    def broadcast(self, tensors: Sequence[Tensor], source: int = 0) -> None:
        """Overwrite these tensors with those of one stage."""
        group = self._group()
        with self.peers.explain_errors(f"receiving from stage {source}", group=group):
            for tensor in tensors:
                # Through the host, which works for all devices.
                here = tensor.to("cpu")
                broadcast_tensors([here], self.world.process_of(self.world.rank, source), group)
                if here is not tensor:
                    tensor.copy_(here)

    def gather(self, value: Value) -> list[Value]:
        """The value of each stage: plain values and tensors."""
        group = self._group()
        with self.peers.explain_errors("gathering from all stages", group=group):
            return gather_values(value, group)

    def any(self, flag: bool) -> bool:
        """Whether the flag is set in any stage."""
        found, group = torch.tensor(int(flag)), self._group()
        with self.peers.explain_errors("asking all stages", group=group):
            dist.all_reduce(found, dist.ReduceOp.MAX, group=group)
        return bool(found)

    def wait(self) -> None:
        """Wait for all stages."""
        self.any(False)

    def transport(self, device: torch.device) -> tuple[dist.ProcessGroup | None, torch.device]:
        """The group with which neighbouring stages exchange tensors, and the device of these tensors."""
        group = self._group()
        if device.type == "cpu":
            return group, device
        if not self._cards:
            separate = self.peers.have_separate_cards(device)
            self._cards.append(new_groups(self.world, "nccl", self.peers.timeout).stages if separate else None)
        return (group, torch.device("cpu")) if self._cards[0] is None else (self._cards[0], device)

    def _group(self) -> dist.ProcessGroup | None:
        self.peers.join()
        return groups_of(self.world, self.peers.timeout).stages


def pipeline_group_here(timeout: timedelta | None = None) -> PipelineGroup | None:
    """The stages of this process's instance; None if the instance is a single process."""
    world = world_from(os.environ)
    if world is None or world.processes_per_instance == 1:
        return None
    return PipelineGroup(peers=Peers(world=world, timeout=timeout or exchange_timeout()))
