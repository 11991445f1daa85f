"""The instances of a job as Horovod's functions see them."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import NoReturn

from pilotage.engine import Peers, World, leave, world_here

__all__ = [
    "cross_rank",
    "cross_size",
    "init",
    "instances",
    "is_homogeneous",
    "is_initialized",
    "local_rank",
    "local_size",
    "peers",
    "rank",
    "shutdown",
    "size",
    "unsupported",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Instances:
    """The instances of a job, and their hosts."""

    world: World
    hosts: tuple[str, ...]
    """The host of each instance."""

    @property
    def here(self) -> str:
        """The host of this instance."""
        return self.hosts[self.world.rank]


_present: list[Instances] = []
"""The instances between `init` and `shutdown`."""


def init(comm: object = None, process_sets: object = None) -> None:
    """Meet the other instances that poprun, torchrun, mpirun or srun started; all of them must call this."""
    if comm is not None:
        unsupported("init(comm=...)", "instances communicate by torch.distributed, not by an MPI communicator")
    if process_sets is not None:
        unsupported("init(process_sets=...)", "use popdist.execute_on_instances for groups of instances")
    if _present:
        return
    world, host = world_here(), socket.gethostname()
    hosts = [host] if world.size == 1 else Peers(world=world).gather(host)
    _present.append(Instances(world=world, hosts=tuple(hosts)))


def shutdown() -> None:
    """Leave the other instances."""
    if _present and _present.pop().world.processes > 1:
        leave()


def is_initialized() -> bool:
    """Whether `init` was called."""
    return bool(_present)


def instances() -> Instances:
    """The instances, once `init` was called."""
    if not _present:
        raise ValueError("Horovod has not been initialized; use hvd.init().")
    return _present[0]


def peers() -> Peers:
    """The collective operations among the instances."""
    return Peers(world=instances().world)


def rank() -> int:
    """The index of this instance."""
    return instances().world.rank


def size() -> int:
    """The number of instances."""
    return instances().world.size


def local_rank() -> int:
    """The index of this instance on its host."""
    return instances().world.local_rank


def local_size() -> int:
    """The number of instances on this host."""
    present = instances()
    return present.hosts.count(present.here)


def cross_rank() -> int:
    """The index of this host."""
    present = instances()
    return list(dict.fromkeys(present.hosts)).index(present.here)


def cross_size() -> int:
    """The number of hosts."""
    return len(set(instances().hosts))


def is_homogeneous() -> bool:
    """Whether every host has the same number of instances."""
    hosts = instances().hosts
    return len({hosts.count(host) for host in hosts}) == 1


def unsupported(what: str, why: str) -> NoReturn:
    """Raise the error for something that only Horovod itself can do."""
    raise NotImplementedError(f"hvd.{what} is not available in Pilotage's horovod.torch: {why}.")
