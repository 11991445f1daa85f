"""One operation of a program in a report."""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.prediction.document.numbers import Amount, Count, Phase, Source

__all__ = ["Operation"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One operation of a program; costs are those of one run of it.

    Large because it is one row of a table, with a field for each column.
    """

    index: Count
    """Its position in the device's list of operations."""
    name: str
    """Such as ``aten.convolution``."""
    phase: Phase
    module: str = ""
    """The module of the model that it belongs to; empty if none does."""
    stage: Count | None = None
    times: Count = 1
    """How many times it runs in one update."""
    flops: Count = 0
    bytes: Count = 0
    """Bytes that it reads and writes."""
    seconds: Amount | None = None
    """The predicted time."""
    measured_seconds: Amount | None = None
    measured_bytes: Count | None = None
    """Memory in use on the device after it, measured."""
    output: str = ""
    """Such as ``f32[8,64,32,32]``."""
    source: Source | None = None
