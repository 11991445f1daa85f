"""What the processes of a run tell each other on the host: numbers, places, decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
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
    def is_distributed(self) -> bool:
        """Whether there are others."""
        return self.world.size > 1

    def exchanging(self, doing: str) -> AbstractContextManager[None]:
        """Name the processes that did not come, where an exchange inside fails."""
        return pilotage.explained_exchange(self.world, doing) if self.is_distributed else nullcontext()

    def mean(self, values: Tensor) -> Tensor:
        """The mean over all processes of numbers on the host."""
        if not self.is_distributed:
            return values
        total = values.double()
        with self.exchanging("averaging numbers"):
            dist.all_reduce(total)
        return (total / self.size).to(values.dtype)

    def gather(self, value: Value) -> list[Value]:
        """What each process has here, by rank: plain values and tensors."""
        if not self.is_distributed:
            return [value]
        with self.exchanging("gathering"):
            return pilotage.gather_values(value)

    def broadcast(self, value: Value) -> Value:
        """What the first process has here, everywhere: a plain value or tensors."""
        if not self.is_distributed:
            return value
        with self.exchanging("hearing from rank 0"):
            return pilotage.broadcast_value(value)  # type: ignore[no-any-return]

    @contextmanager
    def shared_buffers(self, module: nn.Module) -> Iterator[None]:
        """Lend a module the first process's buffers, so that all processes validate with the same statistics.

        Each process has its own again afterwards: training goes on with them, and checkpoints hold them.
        """
        if not self.is_distributed:
            yield
            return
        own = [buffer.detach().clone() for buffer in module.buffers()]
        with self.exchanging("sharing statistics"), torch.no_grad():
            for buffer in module.buffers():
                dist.broadcast(buffer, src=0)
        try:
            yield
        finally:
            with torch.no_grad():
                for buffer, kept in zip(module.buffers(), own, strict=True):
                    buffer.copy_(kept)

    def gather_tensors(self, tensors: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
        """What each process has of tensors that all of them have on the host, by rank."""
        if not self.is_distributed:
            return [dict(tensors)]
        found: list[dict[str, Tensor]] = [{} for _ in range(self.size)]
        with self.exchanging("gathering statistics"):
            for name, tensor in tensors.items():
                parts = [torch.empty_like(tensor) for _ in found]
                dist.all_gather(parts, tensor)
                for process, part in zip(found, parts, strict=True):
                    process[name] = part
        return found

    def leave(self) -> None:
        """Part, once everybody is done."""
        if self.is_distributed and dist.is_initialized():
            with self.exchanging("parting"):
                dist.barrier()
            dist.destroy_process_group()
