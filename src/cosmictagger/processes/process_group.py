"""What the processes of a run exchange on the host."""

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
    """This process and its peers; with one process, every exchange returns its input."""

    world: World = field(default_factory=World)
    backend: str = "none"
    """The backend that exchanges gradients between devices."""

    per_instance_files: bool = False
    """Whether each process writes its own checkpoints, as PopDist's programs do."""

    @property
    def rank(self) -> int:
        """The number of this process, from 0."""
        return self.world.rank

    @property
    def size(self) -> int:
        """The number of processes."""
        return self.world.size

    @property
    def writes(self) -> bool:
        """Whether this process logs and writes tables: only the first does."""
        return self.world.rank == 0

    @property
    def is_distributed(self) -> bool:
        """Whether there are other processes."""
        return self.world.size > 1

    def exchanging(self, doing: str) -> AbstractContextManager[None]:
        """If an exchange inside fails, name the processes that are missing."""
        return pilotage.explained_exchange(self.world, doing) if self.is_distributed else nullcontext()

    def mean(self, values: Tensor) -> Tensor:
        """The mean of host values over all processes."""
        if not self.is_distributed:
            return values
        total = values.double()
        with self.exchanging("averaging numbers"):
            dist.all_reduce(total)
        return (total / self.size).to(values.dtype)

    def gather(self, value: Value) -> list[Value]:
        """The values of all processes, by rank: plain values and tensors."""
        if not self.is_distributed:
            return [value]
        with self.exchanging("gathering"):
            return pilotage.gather_values(value)

    def broadcast(self, value: Value) -> Value:
        """The first process's value: a plain value or tensors."""
        if not self.is_distributed:
            return value
        with self.exchanging("receiving from rank 0"):
            return pilotage.broadcast_value(value)

    @contextmanager
    def shared_buffers(self, module: nn.Module) -> Iterator[None]:
        """Temporarily load the first process's buffers, so that all processes validate with the same statistics.

        Afterwards each process has its own buffers again, which training and checkpoints use.
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
        """The host tensors of all processes, by rank."""
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
        """Disconnect once all processes are done."""
        if self.is_distributed and dist.is_initialized():
            with self.exchanging("shutting down"):
                dist.barrier()
            dist.destroy_process_group()
