"""Event classes and vertices of a batch as arrays, for the heads of a network."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from cosmictagger.data.detector import NEUTRINO, PLANES
from cosmictagger.data.events import Array, Batch, SparseBatch, Truths
from cosmictagger.data.truth import NeutrinoTruth, event_class

ABSENT = -1.0
"""Row and column of a missing vertex."""


class TruthSource(Protocol):
    """A source with the simulation's truth."""

    def truth(self, entry: int) -> NeutrinoTruth | None:
        """The neutrino of an event."""


def truths_of(source: TruthSource, batch: Batch | SparseBatch, downsample: int) -> Truths:
    """Class and vertex of each event; an event whose neutrino is not visible counts as cosmic only."""
    found = [source.truth(int(entry)) for entry in batch.entries]
    kinds = [event_class(truth, int(count)) for truth, count in zip(found, neutrino_pixels(batch), strict=True)]
    vertex = np.full((len(found), PLANES, 2), ABSENT, np.float32)
    for position, truth in zip(vertex, found, strict=True):
        if truth is not None and truth.pixels is not None:
            # The centre of a full-size pixel, in downsampled pixels.
            position[:] = (np.asarray(truth.pixels, np.float32) + 0.5) / 2**downsample
    return Truths(np.array(kinds, np.int64), vertex)


def neutrino_pixels(batch: Batch | SparseBatch) -> Array:
    """How many pixels of each event are labelled as neutrino, over all planes."""
    if isinstance(batch, Batch):
        counts: Array = (batch.label == NEUTRINO).reshape(len(batch.entries), -1).sum(1)
        return counts
    size = int(np.prod(batch.shape[1:]))
    return np.bincount(batch.index[batch.label == NEUTRINO] // size, minlength=len(batch.entries))
