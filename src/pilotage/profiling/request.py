"""What to profile, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Request"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """The settings of `pilotage profile`."""

    script: Path
    arguments: tuple[str, ...] = ()
    warmup: int = 5
    """Updates before anything is measured: captures, libraries that try algorithms, first batches."""

    updates: int = 20
    """Updates that are timed as a whole."""

    looks: int = 3
    """Updates after these in which each operation is timed."""

    tensorboard: Path | None = None
    """Where to put a trace of torch's own profiler of one more update; None for no such update."""

    @property
    def steps(self) -> int:
        """All updates that the script has to make."""
        return self.warmup + self.updates + self.looks + (self.tensorboard is not None)
