"""What an executor tells the monitor about itself."""

from __future__ import annotations

import torch

from pilotage.distributed.environments import world_here
from pilotage.distributed.world import World
from pilotage.errors import OptionError
from pilotage.monitoring.announcement import ProgramDescription
from pilotage.monitoring.announcer import Announcer
from pilotage.options.execution import Execution


def presence_of(execution: Execution, *, trains: bool) -> Announcer:
    """Someone who listens to an executor and announces what it does."""
    world = _world()
    batching = execution.batching
    description = ProgramDescription(
        program=execution.name,
        trains=trains,
        replicas=batching.replicas,
        # An inference program shares no updates, but its process is one of an instance's all the same.
        instance=max(execution.instance, world.rank),
        instances=max(batching.instances, world.size),
        stage=world.stage,
        job=None if world.address is None else f"{world.launcher} at {world.address}:{world.port}",
    )
    return Announcer(description, hardware_of)


def hardware_of(device: str) -> str:
    """What a card says who it is, whatever number this process sees it by; empty where a device has no such name."""
    try:
        properties = torch.get_device_module(device).get_device_properties(torch.device(device))
        return str(properties.uuid)
    except (AssertionError, AttributeError, RuntimeError):
        return ""


def _world() -> World:
    try:
        return world_here()
    except OptionError:
        # Whoever needs the world says what is wrong with it.
        return World()
