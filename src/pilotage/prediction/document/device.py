"""What a report says about one device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pilotage.prediction.document.memory import Memory
from pilotage.prediction.document.numbers import Amount, Count, Range, Source
from pilotage.prediction.document.operations import Operation
from pilotage.prediction.document.reading import AtLeast, require
from pilotage.prediction.document.timing import Host, Pipeline, Time

__all__ = ["Change", "Device", "Expensive", "Measured"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Expensive:
    """One of the most expensive operations or tensors of a program."""

    what: str
    seconds: Amount | None = None
    bytes: Count | None = None
    why: str = ""
    source: Source | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A suggested change with its predicted effect."""

    option: str
    how: str
    """The lines to write."""
    peak_bytes: Count | None = None
    update_seconds: Amount | None = None
    throughput: Amount | None = None
    fits: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """The measurements of a real run on the device, to compare with the prediction."""

    updates: Annotated[int, AtLeast(1)]
    """How many updates (or calls, in inference) were measured."""
    update_seconds: Range
    """The tenth percentile, the median and the ninetieth percentile, measured without looking at single operations."""
    throughput: Amount
    """Includes everything that the script does between its updates."""
    loop_seconds: Amount | None = None
    """The mean time from one update to the next, with what the script does between them."""
    unit: str = "samples/s"
    peak_bytes: Count | None = None
    """The largest amount of device memory in use; None if it cannot be measured."""
    how: str
    """How times and memory were measured, in a sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Device:
    """What is known about a program on one kind of device.

    Large because it is the root of everything that a report shows about a device.
    """

    name: str
    title: str
    count: Annotated[int, AtLeast(1)] = 1
    """How many such devices the program uses."""
    capacity_bytes: Count | None = None
    """The memory of one device."""
    fits: bool | None = None
    margin_bytes: int | None = None
    """Capacity without the peak of one device; negative if it does not fit."""
    peak_bytes: Range | None = None
    """The predicted peak of one device; None if nothing was predicted."""
    memory: Memory | None = None
    time: Time | None = None
    measured: Measured | None = None
    operations: tuple[Operation, ...] = ()
    pipeline: Pipeline | None = None
    host: Host | None = None
    expensive: tuple[Expensive, ...] = ()
    changes: tuple[Change, ...] = ()
    insights: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for position, operation in enumerate(self.operations):
            require(
                operation.index == position,
                f"operation {position} has index {operation.index}; the index is the position in the list",
            )
        if self.memory is None or not self.operations:
            return
        if self.memory.peak is not None:
            self._require_operation(self.memory.peak.operation, "peak")
        if self.memory.timeline is not None and self.memory.timeline.operation:
            self._require_operation(self.memory.timeline.operation[-1], "timeline")

    def _require_operation(self, index: int, what: str) -> None:
        require(
            index < len(self.operations),
            f"the {what} is at operation {index}, but there are only {len(self.operations)}",
        )
