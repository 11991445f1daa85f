"""The memory of a device in a report: by category, by module and over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pilotage.prediction.document.numbers import Amount, Count, Source
from pilotage.prediction.document.reading import require

__all__ = ["LayerMemory", "LiveTensor", "Memory", "Peak", "StageMemory", "TileBin", "TileMemory", "Timeline"]

ByCategory = Mapping[str, Count]
"""Bytes of weights, gradients, optimizer, activations, temporaries, inputs, code, exchange or another category."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerMemory:
    """The memory of one module of the model."""

    module: str
    bytes: Count
    category_bytes: ByCategory = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class StageMemory:
    """The memory of one pipeline stage."""

    stage: Count
    peak_bytes: Count
    by_category: ByCategory = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class TileBin:
    """How many tiles use an amount of memory from ``low_bytes`` to below ``high_bytes``."""

    low_bytes: Count
    high_bytes: Count
    tiles: Count


@dataclass(frozen=True, kw_only=True, slots=True)
class TileMemory:
    """The memory of the tiles of an IPU, each of which has its own."""

    count: Count
    capacity_bytes: Count
    """The memory of one tile."""
    mean_bytes: Amount
    max_bytes: Count
    histogram: tuple[TileBin, ...] = ()
    bytes: tuple[Count, ...] = ()
    """The memory of each tile in the order of their numbers, if it is known."""

    def __post_init__(self) -> None:
        require(
            len(self.bytes) in (0, self.count),
            f"the tiles have {len(self.bytes)} values of bytes, but there are {self.count} tiles; give all or none",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Timeline:
    """Live bytes of each category after some of the operations of one update; the peak is always among them."""

    operation: tuple[Count, ...]
    """Positions in the device's list of operations, increasing."""
    bytes: Mapping[str, tuple[Count, ...]]

    def __post_init__(self) -> None:
        for category, values in self.bytes.items():
            require(
                len(values) == len(self.operation),
                f"the timeline has {len(self.operation)} operations but {len(values)} values of {category!r}",
            )
        require(
            all(first < second for first, second in zip(self.operation, self.operation[1:], strict=False)),
            "the operations of the timeline do not increase",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveTensor:
    """A tensor that is in memory at the peak."""

    name: str
    bytes: Count
    category: str
    module: str = ""
    source: Source | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Peak:
    """The moment at which most memory is in use."""

    operation: Count
    """The position of the operation in the device's list of operations."""
    live: tuple[LiveTensor, ...] = ()
    """The largest tensors at this moment, largest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """The memory of one device."""

    by_category: ByCategory
    """Bytes at the peak."""
    by_layer: tuple[LayerMemory, ...] = ()
    by_stage: tuple[StageMemory, ...] = ()
    tiles: TileMemory | None = None
    timeline: Timeline | None = None
    peak: Peak | None = None
