"""Read the world from the variables of launchers; the first launcher that is recognised counts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from pilotage.distributed.environments.mpich import mpich_world
from pilotage.distributed.environments.openmpi import openmpi_world
from pilotage.distributed.environments.poprun import poprun_world
from pilotage.distributed.environments.slurm import slurm_world
from pilotage.distributed.environments.torchrun import torchrun_world
from pilotage.distributed.world import World

__all__ = ["READERS", "world_from", "world_here"]

READERS: tuple[Callable[[Mapping[str, str]], World | None], ...] = (
    poprun_world,
    torchrun_world,
    openmpi_world,
    slurm_world,
    mpich_world,
)
"""In order of precedence: poprun may itself run under SLURM, and torchrun under either."""


def world_from(environment: Mapping[str, str]) -> World | None:
    """The world that a launcher described; None without a launcher."""
    worlds = (read(environment) for read in READERS)
    return next((world for world in worlds if world is not None), None)


def world_here() -> World:
    """The world that poprun, torchrun, mpirun or srun started; without a launcher, a world of one process."""
    return world_from(os.environ) or World()
