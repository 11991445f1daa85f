"""Connecting the processes of a run."""

from __future__ import annotations

from collections.abc import Callable

import pilotage
from cosmictagger.configuration.run import Run
from cosmictagger.errors import DeviceError
from cosmictagger.processes.process_group import Processes
from pilotage import World


def join(run: Run, exchange: Callable[[World], tuple[str, str]]) -> Processes:
    """Connect to the other processes, if any; ``exchange`` gives the type of the gradients and the backend for them."""
    world = pilotage.world_here()
    if not run.distributed or world.size == 1:
        return Processes()
    device, backend = exchange(world)
    connect(world, backend if device == "cpu" else f"cpu:gloo,{device}:{backend}")
    return Processes(world=world, backend=backend)


def connect(world: World, backend: str) -> None:
    """Start ``torch.distributed`` with a backend; raises if the processes have no address to meet at."""
    if world.directory is None and (world.address is None or world.port is None):
        raise DeviceError(
            f"This is process {world.rank} of {world.size}, started by {world.launcher}, but no address is known. "
            "Set MASTER_ADDR to the host of process 0 and MASTER_PORT to a free port there."
        )
    pilotage.join_world(world, backend)
