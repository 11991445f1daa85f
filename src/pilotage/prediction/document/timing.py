"""The time of a device in a report: of one update, of a pipeline's schedule, and of the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pilotage.prediction.document.numbers import Amount, Count, Phase, Range
from pilotage.prediction.document.reading import require

__all__ = ["Host", "HostEntry", "Pipeline", "PipelineEntry", "Throughput", "Time"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Throughput(Range):
    """Samples, tokens or images in a second."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Time:
    """The predicted time of one update, or of one call in inference."""

    update_seconds: Range
    by_part: Mapping[str, Amount] = field(default_factory=dict)
    """Seconds of compute, exchange, synchronisation, host, collectives, bubble, launch or another part."""
    throughput: Throughput
    unit: str = "samples/s"


@dataclass(frozen=True, kw_only=True, slots=True)
class PipelineEntry:
    """One phase of one micro-batch on one stage, or the update of a stage."""

    stage: Count
    phase: Phase
    micro_batch: Count | None
    """None for the update."""
    start: Amount
    end: Amount

    def __post_init__(self) -> None:
        _require_order(self.start, self.end)


@dataclass(frozen=True, kw_only=True, slots=True)
class Pipeline:
    """The schedule of a pipeline over one update."""

    stages: Count
    seconds: Amount
    bubble: Amount
    """The share of time in which a stage waits, from 0 to 1."""
    entries: tuple[PipelineEntry, ...]

    def __post_init__(self) -> None:
        require(self.bubble <= 1, f"the bubble of a pipeline is {self.bubble}; it is a share from 0 to 1")
        for entry in self.entries:
            require(
                entry.stage < self.stages,
                f"the pipeline has {self.stages} stages, but an entry is of stage {entry.stage}; the first is 0",
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class HostEntry:
    """Something that the host did in a real run, in seconds since its start."""

    track: str
    """Who did it, such as a thread; entries of one track are drawn in one row."""
    name: str
    start: Amount
    end: Amount

    def __post_init__(self) -> None:
        _require_order(self.start, self.end)


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """The timeline of the host in a real run."""

    entries: tuple[HostEntry, ...]


def _require_order(start: float, end: float) -> None:
    require(start <= end, f"an entry starts at {start} s and ends before that, at {end} s")
