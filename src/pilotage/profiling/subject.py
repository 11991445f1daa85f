"""The subject of a profile: its phases, and the measurements so far."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import Enum

import torch

from pilotage.profiling.clocks import synchronize
from pilotage.profiling.device_memory import peak_bytes, restart_peak
from pilotage.profiling.observation import Table
from pilotage.profiling.request import Request
from pilotage.profiling.timeline import UPDATES, HostTimeline

__all__ = ["Enough", "Facts", "Stage", "Subject"]


class Enough(SystemExit):
    """Ends a script once everything was measured."""


class Stage(Enum):
    """The phase of a subject's profile."""

    WARMING = "warming"
    TIMING = "timing"
    """Whole updates are timed."""
    LOOKING = "looking"
    """Each operation is timed."""
    TRACING = "tracing"
    """Torch's own profiler records one update."""
    DONE = "done"


@dataclass(kw_only=True)
class Facts:
    """A description of the profiled model.

    Large because each field is a number that reports show.
    """

    name: str
    trains: bool
    device: torch.device
    label: str
    """The device by name."""
    samples: int | None = None
    """Samples of one update, or of one call in inference."""
    micro_batch: int | None = None
    device_iterations: int = 1
    accumulation: int = 1
    replicas: int = 1
    stages: int = 1
    parameters: int = 0
    precision: str = "float32"
    how: str = ""
    """How the model runs."""
    notes: list[str] = field(default_factory=list)


class Subject:
    """One model of the script, from its first update to its last one."""

    def __init__(self, request: Request, timeline: HostTimeline, facts: Facts) -> None:
        self.request = request
        self.facts = facts
        self.timeline = timeline
        self.updates = 0
        self.seconds: list[float] = []
        """The seconds of each measured update."""
        self.wall = 0.0
        """The seconds of all measured updates together, including the time between them."""
        self.table: Table | None = None
        self.peak: int | None = None
        self._began: float | None = None
        self._looked = 0
        self.can_look = True
        """Whether operations can be timed one by one."""
        self.traced = request.tensorboard is None

    @property
    def stage(self) -> Stage:
        """The phase that the next update belongs to."""
        if self.updates < self.request.warmup:
            return Stage.WARMING
        if len(self.seconds) < self.request.updates:
            return Stage.TIMING
        if self.can_look and self._looked < self.request.looks:
            return Stage.LOOKING
        return Stage.DONE if self.traced else Stage.TRACING

    def before(self) -> None:
        """An update begins, or the script prepares one."""
        if self.stage is Stage.TIMING and self._began is None:
            synchronize(self.facts.device)
            self.timeline.begin()
            restart_peak(self.facts.device)
            self._began = time.perf_counter()

    def after(self, start: float, end: float, updates: int = 1) -> None:
        """Record ``updates`` updates that were made between two points in time."""
        stage = self.stage
        if stage is Stage.TIMING:
            for number in range(updates):
                first = start + (end - start) * number / updates
                last = start + (end - start) * (number + 1) / updates
                self.timeline.note(UPDATES, f"update {len(self.seconds) + 1}", first, last)
                self.seconds.append(last - first)
            self.wall = end - (self._began if self._began is not None else start)
            self.peak = peak_bytes(self.facts.device)
        elif stage is Stage.LOOKING:
            self._looked += updates
            self.peak = peak_bytes(self.facts.device)
        elif stage is Stage.TRACING:
            self.traced = True
        self.updates += updates
        self.before()

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to measure."""
        return self.stage is Stage.DONE
