"""The measurements of one operation, and of all operations of an update."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from pilotage.profiling.device_memory import Holding

__all__ = ["Observed", "PeakSeen", "Sighting", "Table"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Observed:
    """One operation, apart from its times."""

    name: str
    phase: str
    module: str = ""
    line: str | None = None
    """The user's line, as ``file:number``."""
    output: str = ""
    flops: int = 0
    bytes: int = 0
    stage: int | None = None


@dataclass(slots=True)
class Sighting:
    """One operation with what was measured each time it ran."""

    what: Observed
    seconds: list[float] = field(default_factory=list)
    memory: int = 0
    """The largest number of bytes in use after it."""
    by_category: dict[str, int] = field(default_factory=dict)
    runs: int = 0
    """How many times it ran in one update."""

    @property
    def median(self) -> float | None:
        """The median time."""
        return statistics.median_low(self.seconds) if self.seconds else None


@dataclass(frozen=True, slots=True)
class PeakSeen:
    """The moment of the highest memory."""

    operation: int
    bytes: int
    by_category: dict[str, int]
    live: list[Holding]


@dataclass(slots=True)
class Table:
    """The operations of one update in their order."""

    sightings: list[Sighting] = field(default_factory=list)
    peak: PeakSeen | None = None

    def note_memory(self, place: int, total: int, live_by_category: dict[str, int]) -> None:
        """Keep the largest amount after an operation."""
        sighting = self.sightings[place]
        if total >= sighting.memory:
            sighting.memory, sighting.by_category = total, live_by_category
