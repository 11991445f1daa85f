"""Which processes talk among themselves, where each instance is one process for each stage."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from weakref import WeakKeyDictionary

import torch.distributed as dist

from pilotage.distributed.handshake import authenticate
from pilotage.distributed.world import World


@dataclass(frozen=True, slots=True)
class Groups:
    """The two groups that a process is in."""

    instances: dist.ProcessGroup | None
    """The processes of its stage, one of each instance; None for all processes there are."""

    stages: dist.ProcessGroup | None
    """The processes of its instance, one of each stage; None for all processes there are."""


_ALL = Groups(None, None)

_OF_WORLD: WeakKeyDictionary[dist.ProcessGroup, Groups] = WeakKeyDictionary()
"""torch.distributed has one world in each process, and so there are these groups once; they go with it."""


def groups_of(world: World, timeout: timedelta) -> Groups:
    """The gloo groups of a world that has come together; all processes have to ask for them."""
    if world.processes_per_instance == 1:
        return _ALL
    everyone = dist.group.WORLD
    assert everyone is not None
    if everyone not in _OF_WORLD:
        _OF_WORLD[everyone] = new_groups(world, "gloo", timeout)
    return _OF_WORLD[everyone]


def new_groups(world: World, backend: str, timeout: timedelta) -> Groups:
    """Groups that talk by a library of torch.distributed; all processes have to make them, at the same time."""
    if world.processes_per_instance == 1:
        return Groups(_new(None, backend, timeout), None)
    ranks, stages = range(world.size), range(world.stages_per_replica)
    # Each process has to take part in the making of every group, its own or not.
    instances = [_new([world.process_of(rank, stage) for rank in ranks], backend, timeout) for stage in stages]
    pipelines = [_new([world.process_of(rank, stage) for stage in stages], backend, timeout) for rank in ranks]
    return Groups(instances[world.stage or 0], pipelines[world.rank])


def new_group_among(world: World, members: tuple[int, ...], timeout: timedelta) -> dist.ProcessGroup:
    """The processes of this stage in some of the instances; all processes of the world have to call it."""
    made = [
        _new([world.process_of(rank, stage) for rank in members], "gloo", timeout)
        for stage in range(world.processes_per_instance)
    ]
    return made[world.stage or 0]


def _new(processes: list[int] | None, backend: str, timeout: timedelta) -> dist.ProcessGroup:
    group: dist.ProcessGroup = dist.new_group(processes, backend=backend, timeout=timeout)
    authenticate(group)
    return group
