"""What the processes of a run tell each other on the host: numbers, places, decisions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from pilotage import World

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True, slots=True)
class Processes:
    """This process and its peers; alone, every exchange gives back what it was given."""

    world: World = field(default_factory=World)
    backend: str = "none"
    """What carries gradients between devices."""

    per_instance_files: bool = False
    """Whether each process keeps checkpoints of its own, as PopDist's programs do."""

    @property
    def rank(self) -> int:
        """This process, counted from 0."""
        return self.world.rank

    @property
    def size(self) -> int:
        """All processes."""
        return self.world.size

    @property
    def writes(self) -> bool:
        """Whether this process is the one that logs and writes tables."""
        return self.world.rank == 0

    @property
    def shares(self) -> bool:
        """Whether there are others."""
        return self.world.size > 1

    def mean(self, values: Tensor) -> Tensor:
        """The mean over all processes of numbers on the host."""
        if not self.shares:
            return values
        total = values.double()
        dist.all_reduce(total)
        return (total / self.size).to(values.dtype)

    def gather(self, value: Value) -> list[Value]:
        """What each process has here, by rank."""
        if not self.shares:
            return [value]
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, value)
        return found

    def first(self, value: Value) -> Value:
        """What the first process has here, everywhere."""
        if not self.shares:
            return value
        told: list[Any] = [value if self.writes else None]
        dist.broadcast_object_list(told, src=0, device=torch.device("cpu"))
        return told[0]  # type: ignore[no-any-return]

    @torch.no_grad()
    def share_buffers(self, module: nn.Module) -> None:
        """Take over the first process's buffers: statistics of normalisation, to be validated with alike everywhere."""
        if self.shares:
            for buffer in module.buffers():
                dist.broadcast(buffer, src=0)

    def leave(self) -> None:
        """Part, once everybody is done."""
        if self.shares and dist.is_initialized():
            dist.barrier()
            dist.destroy_process_group()
