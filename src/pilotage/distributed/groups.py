"""Process groups, for instances that are one process per stage."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from weakref import WeakKeyDictionary

import torch.distributed as dist

from pilotage.distributed.handshake import authenticate
from pilotage.distributed.world import World


@dataclass(frozen=True, slots=True)
class Groups:
    """The two groups of a process."""

    instances: dist.ProcessGroup | None
    """The processes of its stage, one per instance; None for all processes."""

    stages: dist.ProcessGroup | None
    """The processes of its instance, one per stage; None for all processes."""


_ALL = Groups(None, None)

_OF_WORLD: WeakKeyDictionary[dist.ProcessGroup, Groups] = WeakKeyDictionary()
"""The groups of each default group of torch.distributed; they are deleted with it."""


def groups_of(world: World, timeout: timedelta) -> Groups:
    """The gloo groups of a world. Collective: every process must call it."""
    if world.processes_per_instance == 1:
        return _ALL
    everyone = dist.group.WORLD
    assert everyone is not None
    if everyone not in _OF_WORLD:
        _OF_WORLD[everyone] = new_groups(world, "gloo", timeout)
    return _OF_WORLD[everyone]


def new_groups(world: World, backend: str, timeout: timedelta) -> Groups:
    """New groups with a backend of torch.distributed. Collective: every process must call it."""
    if world.processes_per_instance == 1:
        return Groups(_new(None, backend, timeout), None)
    ranks, stages = range(world.size), range(world.stages_per_replica)
    # Every process has to take part in creating every group, its own or not.
    instances = [_new([world.process_of(rank, stage) for rank in ranks], backend, timeout) for stage in stages]
    pipelines = [_new([world.process_of(rank, stage) for stage in stages], backend, timeout) for rank in ranks]
    return Groups(instances[world.stage or 0], pipelines[world.rank])


def new_group_among(world: World, members: tuple[int, ...], timeout: timedelta) -> dist.ProcessGroup:
    """The processes of this stage in some of the instances. Collective: every process must call it."""
    groups = [
        _new([world.process_of(rank, stage) for rank in members], "gloo", timeout)
        for stage in range(world.processes_per_instance)
    ]
    return groups[world.stage or 0]


def _new(processes: list[int] | None, backend: str, timeout: timedelta) -> dist.ProcessGroup:
    group: dist.ProcessGroup = dist.new_group(processes, backend=backend, timeout=timeout)
    authenticate(group)
    return group
