"""What the processes of a run tell each other on the host: numbers, places, decisions."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

import pilotage
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

    def exchanging(self, doing: str) -> AbstractContextManager[None]:
        """Name the processes that did not come, where an exchange inside fails."""
        return pilotage.explained_exchange(self.world, doing) if self.shares else nullcontext()

    def mean(self, values: Tensor) -> Tensor:
        """The mean over all processes of numbers on the host."""
        if not self.shares:
            return values
        total = values.double()
        with self.exchanging("averaging numbers"):
            dist.all_reduce(total)
        return (total / self.size).to(values.dtype)

    def gather(self, value: Value) -> list[Value]:
        """What each process has here, by rank: plain values and tensors."""
        if not self.shares:
            return [value]
        with self.exchanging("gathering"):
            return pilotage.gather_values(value)

    def first(self, value: Value) -> Value:
        """What the first process has here, everywhere: a plain value or tensors."""
        if not self.shares:
            return value
        with self.exchanging("hearing from rank 0"):
            return pilotage.broadcast_value(value)  # type: ignore[no-any-return]

    @torch.no_grad()
    def share_buffers(self, module: nn.Module) -> None:
        """Take over the first process's buffers: statistics of normalisation, to be validated with alike everywhere."""
        if self.shares:
            with self.exchanging("sharing statistics"):
                for buffer in module.buffers():
                    dist.broadcast(buffer, src=0)

    def leave(self) -> None:
        """Part, once everybody is done."""
        if self.shares and dist.is_initialized():
            with self.exchanging("parting"):
                dist.barrier()
            dist.destroy_process_group()
