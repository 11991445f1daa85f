"""A record of what an executor ran, and where."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pilotage.events import StepsRun
from pilotage.program.schedule import Schedule


@dataclass(slots=True)
class RunRecord:
    """Counts of what an executor ran, by the device and tier that ran it."""

    calls: int = 0
    updates: int = 0
    compilations: int = 0
    compilation_seconds: float = 0.0
    steps: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Micro-batches by (device, tier)."""

    tier_changes: list[tuple[int, str]] = field(default_factory=list)
    """Updates done, and the tier from then on."""

    def count(self, device: str, tier: str, schedule: Schedule, seconds: float) -> StepsRun:
        """Note one host call; returns what it has done, for listeners."""
        micro_batches, updates = schedule.micro_batches, schedule.updates
        self.calls += 1
        self.updates += updates
        self.steps[device, tier] += micro_batches
        return StepsRun(device=device, tier=tier, micro_batches=micro_batches, updates=updates, seconds=seconds)

    def count_compilation(self, seconds: float) -> None:
        """Note one compilation."""
        self.compilations += 1
        self.compilation_seconds += seconds

    @property
    def latest_tier(self) -> str | None:
        """The tier of the last step; None before the first."""
        return next(reversed(self.steps), (None, None))[1]

    def __str__(self) -> str:
        places = ", ".join(f"{count} on {device} ({tier})" for (device, tier), count in self.steps.items())
        return f"{self.calls} calls, {self.updates} updates; steps: {places or 'none'}"
