"""Sparse events cached in memory, for devices that train faster than files are decoded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cosmictagger.data.events import Array, Batch, SparseBatch
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.data.truth import NeutrinoTruth
from cosmictagger.errors import DataError

BYTES_PER_PIXEL = 13


class CachedEvents:
    """Caches the events of a file at one downsampling, so that each event is read once.

    An event takes `BYTES_PER_PIXEL` for each filled pixel: half a megabyte at downsample 1.
    """

    def __init__(self, source: EventFile, *, downsample: int) -> None:
        self._source, self._downsample = source, downsample
        self._events: dict[int, SparseBatch] = {}
        self._truths: dict[int, NeutrinoTruth | None] = {}

    def __len__(self) -> int:
        return len(self._source)

    @property
    def path(self) -> Path:
        """The file."""
        return self._source.path

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the stored images."""
        return self._source.shape

    @property
    def max_pixels(self) -> int:
        """The largest number of filled pixels of an event."""
        return self._source.max_pixels

    def batch(self, entries: Sequence[int] | Array, downsample: int = 0) -> SparseBatch:
        """Events as filled pixels, equal to the file's own."""
        if downsample != self._downsample:
            raise DataError(f"Events are cached at downsample {self._downsample}, not at {downsample}.")
        events = [self._event(int(entry)) for entry in entries]
        size = int(np.prod(events[0].shape))
        return SparseBatch(
            (len(events), *events[0].shape[1:]),
            np.concatenate([event.index + position * size for position, event in enumerate(events)]),
            np.concatenate([event.charge for event in events]),
            np.concatenate([event.label for event in events]),
            np.concatenate([event.entries for event in events]),
            np.concatenate([event.event_ids for event in events]),
        )

    def truth(self, entry: int) -> NeutrinoTruth | None:
        """The simulation's truth about the neutrino."""
        if entry not in self._truths:
            self._truths[entry] = self._source.truth(entry)
        return self._truths[entry]

    def dense_batch(self, entries: Sequence[int] | Array, downsample: int = 0) -> Batch:
        """Events as images."""
        return self.batch(entries, downsample).dense()

    def _event(self, entry: int) -> SparseBatch:
        # Two threads may read the same new event twice; both get the same result.
        event = self._events.get(entry)
        if event is None:
            event = self._events[entry] = self._source.batch([entry], self._downsample)
        return event
