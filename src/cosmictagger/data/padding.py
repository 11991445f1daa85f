"""Filled pixels brought to one length, for devices that are compiled for one shape."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cosmictagger.data.events import Array, PaddedBatch, SparseBatch
from cosmictagger.errors import DataError


def padded(
    batch: SparseBatch, pixels: int, zeros: Callable[[tuple[int, ...], type[np.generic]], Array] = np.zeros
) -> PaddedBatch:
    """So many pixels of each event; where it has fewer, its first one comes again. ``zeros`` gives arrays to fill."""
    events, size = batch.shape[0], int(np.prod(batch.shape[1:]))
    # Events come one after the other, so a border between two is found by bisection whatever the order within.
    borders = np.searchsorted(batch.index, np.arange(events + 1) * size)
    _check(np.diff(borders), pixels, batch.entries)
    whole = PaddedBatch(
        batch.shape,
        zeros((events, pixels), np.int32),
        zeros((events, pixels), np.float32),
        zeros((events, pixels), np.uint8),
        batch.entries,
        batch.event_ids,
        batch.truths,
    )
    for number in range(events):
        own = slice(borders[number], borders[number + 1])
        _fill(whole.index[number], batch.index[own] - number * size)
        _fill(whole.charge[number], batch.charge[own])
        _fill(whole.label[number], batch.label[own])
    return whole


def _fill(row: Array, values: Array) -> None:
    row[: len(values)] = values
    # Without any pixel it stays zero: the first pixel of the image, which is empty.
    if len(values):
        row[len(values) :] = values[0]


def _check(counts: Array, pixels: int, entries: Array) -> None:
    if (most := int(counts.max(initial=0))) > pixels:
        raise DataError(
            f"Event {entries[int(counts.argmax())]} has {most} filled pixels where the file promises {pixels} at most: its charges "
            "and labels name different pixels. Use data.data_format=channels_last, which sends whole images."
        )
