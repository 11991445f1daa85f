"""Announces an executor to the monitor."""

from __future__ import annotations

import torch

from pilotage.distributed.environments import world_here
from pilotage.distributed.world import World
from pilotage.errors import OptionError
from pilotage.monitoring.announcement import ProgramDescription
from pilotage.monitoring.announcer import Announcer
from pilotage.options.execution import Execution


def presence_of(execution: Execution, *, trains: bool) -> Announcer:
    """A listener that announces the executor's programs."""
    world = _world()
    batching = execution.batching
    description = ProgramDescription(
        program=execution.name,
        trains=trains,
        replicas=batching.replicas,
        # An inference program shares no updates, but its process still belongs to an instance.
        instance=max(execution.instance, world.rank),
        instances=max(batching.instances, world.size),
        stage=world.stage,
        job=None if world.address is None else f"{world.launcher} at {world.address}:{world.port}",
    )
    return Announcer(description, hardware_of)


def hardware_of(device: str) -> str:
    """The UUID of a card, which does not depend on this process's numbering; empty if a device has none."""
    try:
        properties = torch.get_device_module(device).get_device_properties(torch.device(device))
        return str(properties.uuid)
    except (AssertionError, AttributeError, RuntimeError):
        return ""


def _world() -> World:
    try:
        return world_here()
    except OptionError:
        # Errors about the world are reported where it is needed.
        return World()
