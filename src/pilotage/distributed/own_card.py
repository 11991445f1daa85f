"""Give each instance its own card if the launcher does not."""

from __future__ import annotations

import os
from pathlib import Path

from pilotage.distributed.environments import world_from
from pilotage.distributed.launcher.guard import card_of, cards_of

DRIVERS = Path("/proc/driver/nvidia/gpus")


def take_own_card(drivers: Path = DRIVERS) -> str | None:
    """Restrict this process to one card by CUDA_VISIBLE_DEVICES; returns the card, or None if nothing changes.

    Has to be called before CUDA is initialised. poprun assigns cards itself; torchrun, mpirun and srun often do not, so
    that all instances would share the first one. A CUDA_VISIBLE_DEVICES that is already set is kept.
    """
    world = world_from(os.environ)
    if world is None or world.processes == 1:
        return None
    cards = cards_of(os.environ, drivers)
    if len(cards) < 2:
        return None
    card = card_of(cards, world.local_rank, world.stage or 0, world.processes_per_instance)
    os.environ["CUDA_VISIBLE_DEVICES"] = card
    return card
