"""The instances of a job, and the collective operations among them."""

from __future__ import annotations

import atexit
import importlib
import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from weakref import WeakSet

import torch
import torch.distributed as dist
from torch import Tensor

from pilotage.distributed.environments import world_from
from pilotage.distributed.environments.variables import is_on_one_host, master_address
from pilotage.distributed.exchange_errors import ExplainedErrors
from pilotage.distributed.groups import groups_of, new_group_among, new_groups
from pilotage.distributed.handshake import authenticate_world, is_authenticated
from pilotage.distributed.job_directory import JobDirectory
from pilotage.distributed.rendezvous import rendezvous
from pilotage.distributed.shutdown import wait_at_exit, wait_for_idle_threads
from pilotage.distributed.values import Value, broadcast_value, gather_values
from pilotage.distributed.world import World
from pilotage.errors import DistributedError
from pilotage.options.environment import exchange_timeout

_VENDOR_BACKENDS = {"hpu": ("hccl", "habana_frameworks.torch.distributed.hccl")}
"""A vendor's backend of torch.distributed, and the module that registers it."""

_SECONDS_AWAKE = 0.05
"""How long to poll a card without sleeping in between."""

COMPILE_TIMEOUT = timedelta(hours=1)
"""How long to wait for instances that may still be compiling."""


@dataclass(frozen=True, kw_only=True)
class Peers:
    """The collective operations of a world; its processes meet at the first one, by gloo.

    Every operation is collective: all instances must call it. One that cannot finish raises `DistributedError`. If
    instances are several processes, those of each stage form a group.
    """

    world: World
    timeout: timedelta = field(default_factory=exchange_timeout)
    """How long to wait for a silent instance."""

    compile_timeout: timedelta = COMPILE_TIMEOUT
    _cards: list[dist.ProcessGroup | None] = field(default_factory=list, repr=False)
    """The group of the cards, once created."""

    _checked: WeakSet[dist.ProcessGroup] = field(default_factory=WeakSet, repr=False)
    """Default groups of torch.distributed that were checked to be this world."""

    kind = "Rank"

    def join(self) -> None:
        """Meet the other processes, unless that has already happened."""
        everyone = dist.group.WORLD
        if everyone is not None:
            if everyone not in self._checked:
                self._check_size()
                self._check_members()
                self._checked.add(everyone)
                wait_at_exit()
            return
        rendezvous(self.world, "gloo", self.timeout)
        with self.explain_errors("meeting the others"):
            groups_of(self.world, self.timeout)
        atexit.register(leave)

    def sum(self, tensor: Tensor) -> None:
        """Sum the tensors of all instances in place, with the same bits everywhere."""
        self.begin_sum(tensor)()

    def begin_sum(self, tensor: Tensor) -> Callable[[], None]:
        """Start to sum the tensors of all instances; the returned function waits for the result."""
        group = self._group_for(tensor) or dist.group.WORLD
        assert group is not None
        with self.explain_errors("adding up", group=group):
            # Called directly: the checks of dist.all_reduce take as long as a layer of a small model.
            work = group.allreduce([tensor])

        def wait() -> None:
            with self.explain_errors("adding up", group=group):
                work.wait()

        return wait

    def sums_on_card(self, tensor: Tensor) -> bool:
        """Whether a card adds up a tensor in its own queue, so that a CUDA graph can contain it; after a first sum."""
        group = self._cards[0] if self._cards else None
        return tensor.is_cuda and group is not None and dist.get_backend(group) == dist.Backend.NCCL

    def wait_for_card(self, is_done: Callable[[], bool], seconds: float) -> None:
        """Wait for sums in a CUDA graph, which no process group watches.

        Raises DistributedError if they take longer than ``seconds`` and the timeout, which ends the group.
        """
        begun, end = time.monotonic(), time.monotonic() + seconds + self.timeout.total_seconds()
        while not is_done():
            now = time.monotonic()
            if now > end:
                group = self._cards[0] if self._cards else None
                with self.explain_errors("adding up", group=group):
                    if group is not None:
                        group.abort()
                    raise RuntimeError(f"Timed out after {now - begun:.0f} s of waiting for the card.")
            if now - begun > _SECONDS_AWAKE:
                time.sleep(_SECONDS_AWAKE / 100)

    def reduce(
        self, tensor: Tensor, operation: dist.ReduceOp.RedOpType, group: dist.ProcessGroup | None = None
    ) -> None:
        """Combine the tensors of all instances, or of a group of them, in place."""
        group = group or self._instances()
        with self.explain_errors("reducing", group=group):
            dist.all_reduce(tensor, operation, group=group)

    def broadcast(self, tensors: Sequence[Tensor], source: int = 0, group: dist.ProcessGroup | None = None) -> None:
        """Overwrite these tensors with those of one instance."""
        group, process = group or self._instances(), self.world.process_of(source, self.world.stage or 0)
        with self.explain_errors(f"receiving from rank {source}", group=group):
            broadcast_tensors(tensors, process, group)

    def gather(self, value: Value, group: dist.ProcessGroup | None = None) -> list[Value]:
        """The value of each instance, by rank: plain values and tensors."""
        group = group or self._instances()
        with self.explain_errors("gathering", group=group):
            return gather_values(value, group)

    def value_of_first(self, value: Value) -> Value:
        """The value of instance 0: plain values and tensors."""
        group, process = self._instances(), self.world.process_of(0, self.world.stage or 0)
        with self.explain_errors("receiving from rank 0", group=group):
            return broadcast_value(value, process, group)

    def gather_everywhere(self, value: Value) -> list[Value]:
        """The value of each process of all instances, by number: plain values and tensors."""
        self.join()
        with self.explain_errors("gathering"):
            return gather_values(value)

    def group_among(self, members: tuple[int, ...]) -> dist.ProcessGroup:
        """A group of some instances. Collective: all instances must call it."""
        self.join()
        with self.explain_errors("making a group"):
            return new_group_among(self.world, members, self.timeout)

    def wait_for_all(self) -> None:
        """Wait for all processes, some of which may still be compiling."""
        self.join()
        with self.explain_errors("waiting for the others"):
            if dist.get_backend() == dist.Backend.GLOO:
                dist.monitored_barrier(timeout=self.compile_timeout, wait_all_ranks=True)
            else:
                dist.barrier()

    def have_separate_cards(self, device: torch.device) -> bool:
        """Whether each process of the world has its own card, so that cards can communicate directly."""
        if device.type not in dist.Backend.backend_capability[dist.Backend.NCCL] or not dist.is_nccl_available():
            return False
        card = str(torch.cuda.get_device_properties(device).uuid)
        cards = self.gather_everywhere((socket.gethostname(), card))
        return len(set(cards)) == len(cards)

    def _instances(self) -> dist.ProcessGroup | None:
        self.join()
        return groups_of(self.world, self.timeout).instances

    def _group_for(self, tensor: Tensor) -> dist.ProcessGroup | None:
        """The group for a tensor: cards communicate directly if each process has one, otherwise through the host."""
        if tensor.device.type == "cpu":
            return self._instances()
        if not self._cards:
            self.join()
            library = self._library_of(tensor.device)
            self._cards.append(new_groups(self.world, library, self.timeout).instances)
        return self._cards[0]

    def _library_of(self, device: torch.device) -> str:
        if device.type not in _VENDOR_BACKENDS:
            return "nccl" if self.have_separate_cards(device) else "gloo"
        library, module = _VENDOR_BACKENDS[device.type]
        importlib.import_module(module)
        return library

    def _check_size(self) -> None:
        size, rank = dist.get_world_size(), dist.get_rank()
        if (rank, size) != (self.world.process, self.world.processes):
            raise DistributedError(
                f"torch.distributed says that this is rank {rank} of {size}, but {self.world.launcher} says rank "
                f"{self.world.process} of {self.world.processes}. Initialise torch.distributed with the launcher's "
                "numbers, or leave it to Pilotage."
            )

    def _check_members(self) -> None:
        """Verify that a group of the user's script only has processes of this job, if there is a key."""
        if self.world.directory is not None and not is_authenticated():
            with self.explain_errors("meeting the others"):
                authenticate_world(JobDirectory.at(self.world.directory).key)

    def explain_errors(
        self, action: str, port: int | None = None, group: dist.ProcessGroup | None = None
    ) -> AbstractContextManager[None]:
        """Turn errors of torch.distributed inside the block into ones that say what to do."""
        return ExplainedErrors(self.world, action, port, group)


def peers_here(timeout: timedelta | None = None) -> Peers | None:
    """The instances of this process's world; None if it is the only one."""
    world = world_from(os.environ)
    return None if world is None or world.size == 1 else Peers(world=world, timeout=timeout or exchange_timeout())


def peers_as(rank: int, size: int) -> Peers | None:
    """The instances of a world in which this one has the given rank; None if it is the only one."""
    if size == 1:
        return None
    world = world_from(os.environ)
    if world is None or (world.rank, world.size) != (rank, size):
        address, port = master_address(os.environ)
        one_host = is_on_one_host(os.environ, address)
        world = World(rank=rank, size=size, address=address, port=port, one_host=one_host, launcher="the options")
    return Peers(world=world)


@torch.no_grad()
def broadcast_tensors(tensors: Sequence[Tensor], process: int, group: dist.ProcessGroup | None) -> None:
    """Overwrite the tensors of a group with those of one of its processes."""
    for tensor in tensors:
        dense = tensor.contiguous()
        dist.broadcast(dense, process, group=group)
        if dense is not tensor:
            tensor.copy_(dense)


def leave() -> None:
    """Leave the world, if it was joined."""
    if dist.is_initialized():
        dist.destroy_process_group()
        wait_for_idle_threads()
