"""The instances of a run, connected through PopDist."""

from __future__ import annotations

import torch.distributed as dist

import pilotage
import popdist
from cosmictagger.processes.joining import connect
from cosmictagger.processes.process_group import Processes


def join_instances() -> Processes:
    """Connect to the other instances, if any; values of the host go through gloo."""
    if not popdist.isPopdistEnvSet():
        world = pilotage.world_here()
        if world.size > 1:
            connect(world, "gloo")
        return Processes(world=world, backend="gloo" if world.size > 1 else "none")
    popdist.init()
    world = pilotage.world_here()
    if world.size > 1 and not dist.is_initialized():
        connect(world, "gloo")
    return Processes(world=world, backend="popdist", per_instance_files=True)
