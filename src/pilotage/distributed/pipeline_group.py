"""The processes that share the replicas of one instance, a stage each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from pilotage.distributed.environments import world_from
from pilotage.distributed.groups import groups_of, new_groups
from pilotage.distributed.peers import Peers, send_to_all
from pilotage.distributed.values import gather_values
from pilotage.distributed.world import World
from pilotage.options.environment import exchange_timeout


@dataclass(frozen=True, kw_only=True)
class PipelineGroup:
    """The stages of an instance, seen from one of them. Every exchange is one that all of them take part in.

    All of them run the same script, so that they come to the same exchanges in the same order.
    """

    peers: Peers
    """The whole world, which this instance is a part of."""

    _cards: list[dist.ProcessGroup | None] = field(default_factory=list, repr=False)
    """The group that cards talk in among themselves; None, where it was found that they cannot."""

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
        """How many there are."""
        return self.world.stages_per_replica

    def wait_for_all(self) -> None:
        """Wait for all others for as long as they may have to compile."""
        self.peers.wait_for_all()

    def broadcast(self, tensors: Sequence[Tensor], source: int = 0) -> None:
        """Overwrite these tensors by those of one stage."""
        group = self._group()
        with self.peers.explain_errors(f"handing on what stage {source} has", group=group):
            for tensor in tensors:
                # Through the host, where all of them can meet whatever their devices are.
                here = tensor.to("cpu")
                send_to_all([here], self.world.process_of(self.world.rank, source), group)
                if here is not tensor:
                    tensor.copy_(here)

    def gather(self, value: Any) -> list[Any]:
        """What each stage has here; plain values and tensors."""
        group = self._group()
        with self.peers.explain_errors("gathering from all stages", group=group):
            return gather_values(value, group)

    def any(self, flag: bool) -> bool:
        """Whether it is true in any of the stages."""
        found, group = torch.tensor(int(flag)), self._group()
        with self.peers.explain_errors("asking all stages", group=group):
            dist.all_reduce(found, dist.ReduceOp.MAX, group=group)
        return bool(found)

    def wait(self) -> None:
        """Wait until all stages have come here."""
        self.any(False)

    def transport(self, device: torch.device) -> tuple[dist.ProcessGroup | None, torch.device]:
        """How neighbours hand on what they have computed, and on which device it has to lie for that."""
        group = self._group()
        if device.type == "cpu":
            return group, device
        if not self._cards:
            alone = self.peers.have_cards_of_their_own(device)
            self._cards.append(new_groups(self.world, "nccl", self.peers.timeout).stages if alone else None)
        return (group, torch.device("cpu")) if self._cards[0] is None else (self._cards[0], device)

    def _group(self) -> dist.ProcessGroup | None:
        self.peers.join()
        return groups_of(self.world, self.peers.timeout).stages


def pipeline_group_here(timeout: timedelta | None = None) -> PipelineGroup | None:
    """The stages of this process's instance; None where the instance is one process."""
    world = world_from(os.environ)
    if world is None or world.processes_per_instance == 1:
        return None
    return PipelineGroup(peers=Peers(world=world, timeout=timeout or exchange_timeout()))
