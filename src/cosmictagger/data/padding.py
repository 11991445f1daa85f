"""Padding filled pixels to one length, for devices that compile for one shape."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cosmictagger.data.events import Array, PaddedBatch, SparseBatch
from cosmictagger.errors import DataError


def padded(
    batch: SparseBatch, pixels: int, zeros: Callable[[tuple[int, ...], type[np.generic]], Array] = np.zeros
) -> PaddedBatch:
    """Pad each event to a number of pixels by repeating its first one. ``zeros`` allocates arrays to fill."""
    events, size = batch.shape[0], int(np.prod(batch.shape[1:]))
    # Events are consecutive, so bisection finds their borders whatever the order within an event.
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
    # Without any pixel the row stays zero: the first pixel of the image, which is empty.
    if len(values):
        row[len(values) :] = values[0]


def _check(counts: Array, pixels: int, entries: Array) -> None:
    if (most := int(counts.max(initial=0))) > pixels:
        raise DataError(
            f"Event {entries[int(counts.argmax())]} has {most} filled pixels, but the file promises at most {pixels}: "
            "its charges and labels are on different pixels. "
            "Use data.data_format=channels_last, which sends whole images."
        )
