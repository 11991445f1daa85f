"""What a script can be ported to."""

from __future__ import annotations

from enum import Enum

__all__ = ["Target"]


class Target(Enum):
    """The interface that a ported script uses."""

    POPTORCH = "poptorch"
    POPDIST = "popdist"
    HPU = "hpu"
    PILOTAGE = "pilotage"
