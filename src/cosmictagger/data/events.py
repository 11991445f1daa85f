"""Events and batches as values: sparse as on disk, or dense for a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cosmictagger.data.detector import PLANES

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False, slots=True)
class SparsePlane:
    """The filled pixels of one plane, in the file's order: column by column, rows increasing."""

    row: Array
    """Drift time, int32."""
    column: Array
    """Wire, int32."""
    charge: Array
    """float32."""
    label: Array
    """uint8: background, cosmic or neutrino."""

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, eq=False, slots=True)
class SparseEvent:
    """One event: three planes of filled pixels."""

    shape: tuple[int, int]
    """Rows and columns of each plane's image."""
    planes: tuple[SparsePlane, ...]
    event_id: tuple[int, int, int] = (-1, -1, -1)
    """Run, subrun, event."""

    def dense(self) -> tuple[Array, Array]:
        """Charge float32 and label uint8, each (planes, rows, columns)."""
        image = np.zeros((PLANES, *self.shape), np.float32)
        label = np.zeros((PLANES, *self.shape), np.uint8)
        for number, plane in enumerate(self.planes):
            image[number, plane.row, plane.column] = plane.charge
            label[number, plane.row, plane.column] = plane.label
        return image, label


@dataclass(frozen=True, eq=False, slots=True)
class PlaneClusters:
    """Pixels of one plane, particle by particle."""

    counts: Array
    """Pixels of each particle, int64; a particle may have none."""
    ids: Array
    """Column times rows of the image plus row, increasing within a particle."""
    values: Array
    """float32."""


@dataclass(frozen=True, eq=False, slots=True)
class Truths:
    """The simulation's truth about the events of a batch."""

    event_label: Array
    """int64 (events,): electron neutrino, muon neutrino, neutral current, cosmic rays only."""
    vertex: Array
    """float32 (events, planes, 2): row and column in the batch's images; negative if there is none."""


@dataclass(frozen=True, eq=False, slots=True)
class Batch:
    """Dense images of several events, channels first by default."""

    image: Array
    """float32 (events, planes, rows, columns)."""
    label: Array
    """uint8 of the same shape."""
    entries: Array
    """int64 (events,): the index of each event in its file."""
    event_ids: Array
    """int64 (events, 3): run, subrun, event."""
    truths: Truths | None = None

    def channels_last(self) -> Batch:
        """The same batch as (events, rows, columns, planes)."""
        image, label = (np.ascontiguousarray(np.moveaxis(each, 1, 3)) for each in (self.image, self.label))
        return Batch(image, label, self.entries, self.event_ids, self.truths)


@dataclass(frozen=True, eq=False, slots=True)
class FilledPixels:
    """The filled pixels of several events."""

    shape: tuple[int, int, int, int]
    """Events, planes, rows, columns of the dense batch."""
    index: Array
    """The position of each pixel."""
    charge: Array
    """float32, of the same shape."""
    label: Array
    """uint8, of the same shape."""
    entries: Array
    event_ids: Array
    truths: Truths | None = None


@dataclass(frozen=True, eq=False, slots=True)
class SparseBatch(FilledPixels):
    """Filled pixels, to be scattered into a dense batch.

    The index is int64, (pixels,): positions in the flattened dense batch, each once, in the file's order.
    """

    def dense(self) -> Batch:
        """Scatter into zeros."""
        image, label = np.zeros(self.shape, np.float32), np.zeros(self.shape, np.uint8)
        image.reshape(-1)[self.index] = self.charge
        label.reshape(-1)[self.index] = self.label
        return Batch(image, label, self.entries, self.event_ids, self.truths)


@dataclass(frozen=True, eq=False, slots=True)
class PaddedBatch(FilledPixels):
    """The same number of filled pixels for each event, for devices that compile for one shape.

    The index is int32, (events, pixels): positions in the event's flattened images. Repeated positions have the same
    values.
    """


AnyBatch: TypeAlias = Batch | SparseBatch | PaddedBatch
"""A batch in any form."""
