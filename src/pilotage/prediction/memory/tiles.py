"""How memory spreads over the tiles of an IPU."""

from __future__ import annotations

from pilotage.prediction.devices.model import Tiles
from pilotage.prediction.document import TileBin, TileMemory

__all__ = ["fullest_tile", "tile_memory"]

_BINS = 24


def fullest_tile(total: int, tiles: Tiles) -> int:
    """The bytes of the fullest tile, if a program needs ``total`` bytes on all of them together."""
    return round(total / tiles.count * tiles.imbalance)


def tile_memory(total: int, tiles: Tiles) -> TileMemory:
    """A distribution over tiles with this total and the model's imbalance: most tiles lie near the mean."""
    mean = total / tiles.count
    spread = max(0.0, tiles.imbalance - 1.0)
    # The cube makes few tiles much fuller and few much emptier than the mean.
    values = [round(mean * (1 + spread * ((2 * (place + 0.5) / tiles.count - 1) ** 3))) for place in range(tiles.count)]
    values[-1] = fullest_tile(total, tiles)
    low, high = values[0], values[-1] + 1
    step = max(1, -(-(high - low) // _BINS))
    counts = [0] * _BINS
    for value in values:
        counts[min(_BINS - 1, (value - low) // step)] += 1
    bins = tuple(
        TileBin(low_bytes=low + place * step, high_bytes=low + (place + 1) * step, tiles=count)
        for place, count in enumerate(counts)
    )
    return TileMemory(
        count=tiles.count, capacity_bytes=tiles.memory_bytes, mean_bytes=mean, max_bytes=values[-1], histogram=bins
    )
