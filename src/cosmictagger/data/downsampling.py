"""Downsampling: charge is averaged over blocks, including empty pixels; the highest label of a block wins."""

from __future__ import annotations

import numpy as np

from cosmictagger.data.detector import MAX_DOWNSAMPLE
from cosmictagger.data.events import Array, SparseEvent, SparsePlane
from cosmictagger.errors import DataError


def check_downsample(downsample: int, shape: tuple[int, int]) -> None:
    """Refuse a downsampling that does not divide the image size."""
    if not 0 <= downsample <= MAX_DOWNSAMPLE or any(side % (1 << downsample) for side in shape):
        raise DataError(
            f"data.downsample={downsample} does not divide images of {shape[0]} x {shape[1]}: "
            f"choose an integer from 0 to {MAX_DOWNSAMPLE} whose power of two divides both sides."
        )


def merge(index: Array, charge: Array, label: Array, *, scale: float, size: int) -> tuple[Array, Array, Array]:
    """Sum scaled charges and take the highest label for equal indices, which are below ``size``.

    Charges of one pixel are added in the given order in float32, as larcv adds them: the sums are bitwise equal.
    """
    # Each pixel is numbered by the last of its entries, which avoids sorting; only written positions are read.
    last = np.empty(size, np.int32)
    last[index] = numbers = np.arange(len(index), dtype=np.int32)
    last_of_mine = last[index]
    chosen = last_of_mine == numbers
    position = (np.cumsum(chosen) - 1)[last_of_mine]
    kept = index[chosen]
    total, highest = np.zeros(len(kept), np.float32), np.zeros(len(kept), np.uint8)
    np.add.at(total, position, charge)
    np.maximum.at(highest, position, label)
    return kept, total * np.float32(scale), highest


def downsample_plane(plane: SparsePlane, shape: tuple[int, int], downsample: int) -> SparsePlane:
    """One plane on the coarser grid."""
    height, width = (side >> downsample for side in shape)
    index = (plane.column >> downsample) * np.int64(height) + (plane.row >> downsample)
    index, charge, label = merge(index, plane.charge, plane.label, scale=0.25**downsample, size=height * width)
    order = np.argsort(index)
    column, row = np.divmod(index[order], height)
    return SparsePlane(row.astype(np.int32), column.astype(np.int32), charge[order], label[order])


def downsample_event(event: SparseEvent, downsample: int) -> SparseEvent:
    """The event on a grid coarser by two to the given power on both axes."""
    check_downsample(downsample, event.shape)
    if downsample == 0:
        return event
    shape = (event.shape[0] >> downsample, event.shape[1] >> downsample)
    planes = tuple(downsample_plane(plane, event.shape, downsample) for plane in event.planes)
    return SparseEvent(shape, planes, event.event_id)
