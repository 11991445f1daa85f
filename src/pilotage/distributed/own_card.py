"""A card for each instance, where the launcher has left all cards of the host to all of them."""

from __future__ import annotations

import os
from pathlib import Path

from pilotage.distributed.environments import world_from
from pilotage.distributed.launcher.guard import card_of, cards_of

DRIVERS = Path("/proc/driver/nvidia/gpus")


def take_own_card(drivers: Path = DRIVERS) -> str | None:
    """Let this process see one card alone, before anything has looked at them; returns which, or None where nothing changes.

    poprun gives cards out itself; torchrun, mpirun and srun often do not, and then all instances would share the first one.
    Whoever sets CUDA_VISIBLE_DEVICES has decided.
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
