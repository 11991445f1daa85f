"""Reading a larcv3 HDF5 file of events with h5py and numpy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from cosmictagger.data.array_pool import ArrayPool
from cosmictagger.data.detector import COSMIC, NEUTRINO, PLANES
from cosmictagger.data.downsampling import check_downsample, downsample_event, merge
from cosmictagger.data.events import Array, Batch, SparseBatch, SparseEvent, SparsePlane
from cosmictagger.data.larcv import layout
from cosmictagger.data.larcv.images import ProducerImages, open_table
from cosmictagger.data.larcv.truth_tables import TruthTables
from cosmictagger.data.truth import NeutrinoTruth, truth_from_row
from cosmictagger.errors import DataError

if TYPE_CHECKING:
    import h5py


class EventFile:
    """The events of one file, with all pixels; several threads can read at once."""

    def __init__(
        self, path: str | Path, *, image: str = layout.IMAGE_PRODUCER, label: str = layout.LABEL_PRODUCER
    ) -> None:
        self.path = Path(path)
        self._arrays = ArrayPool()
        self._file = _open(self.path)
        try:
            self._image, self._label = (ProducerImages(self.path, self._file, producer) for producer in (image, label))
            self._truth = TruthTables(self.path, self._file)
            self._event_ids = self._read_event_ids()
            self._check_labels_match()
        except (OSError, RuntimeError, LookupError, ValueError, TypeError) as error:
            self._file.close()
            raise _unreadable(self.path, error) from error
        except DataError:
            self._file.close()
            raise

    def __len__(self) -> int:
        return len(self._image)

    def __enter__(self) -> EventFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the stored images."""
        return self._image.shape

    @property
    def pixels(self) -> int:
        """The number of filled pixels of all events."""
        return int(self._image.count.sum())

    @property
    def max_pixels(self) -> int:
        """An upper bound of the filled pixels of an event; equal counts of charges and labels mean the same pixels."""
        charge, label = self._image.count, self._label.count
        return int((charge if np.array_equal(charge, label) else charge + label).sum(1).max())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def event(self, entry: int, downsample: int = 0) -> SparseEvent:
        """One sparse event, optionally downsampled."""
        height, width = self.shape
        positions, charge, label = self._voxels(entry)
        column, row = np.divmod(positions.astype(np.int32), np.int32(height))
        borders = np.searchsorted(positions, np.arange(PLANES + 1) * height * width)
        planes = tuple(
            SparsePlane(row[start:stop], column[start:stop] - number * width, charge[start:stop], label[start:stop])
            for number, (start, stop) in enumerate(pairwise(borders))
        )
        return downsample_event(SparseEvent(self.shape, planes, self.event_id(entry)), downsample)

    def event_id(self, entry: int) -> tuple[int, int, int]:
        """Run, subrun and event number of an entry."""
        self._check_entry(entry)
        run, subrun, event = (int(number) for number in self._event_ids[entry])
        return run, subrun, event

    def batch(self, entries: Sequence[int] | Array, downsample: int = 0) -> SparseBatch:
        """Several events as filled pixels, with indices into the dense batch."""
        check_downsample(downsample, self.shape)
        height, width = (side >> downsample for side in self.shape)
        size, scale = PLANES * height * width, 0.25**downsample
        parts = []
        for position, entry in enumerate(entries):
            positions, charge, label = self._voxels(int(entry))
            index = _pixels(positions, self.shape, downsample)
            if downsample:
                index, charge, label = merge(index, charge, label, scale=scale, size=size)
            parts.append((index + position * size, charge, label))
        index, charge, label = (np.concatenate(column) for column in zip(*parts, strict=True))
        shape = (len(entries), PLANES, height, width)
        return SparseBatch(shape, index, charge, label, *self._identity(entries))

    def dense_batch(self, entries: Sequence[int] | Array, downsample: int = 0) -> Batch:
        """Several events as dense images: equal to ``batch(...).dense()``, but faster."""
        check_downsample(downsample, self.shape)
        shape = (len(entries), PLANES, *(side >> downsample for side in self.shape))
        image, label = (self._arrays.zeros(shape, kind) for kind in (np.float32, np.uint8))
        for position, entry in enumerate(entries):
            positions, charge, truth = self._voxels(int(entry))
            index = _pixels(positions, self.shape, downsample)
            _scatter(image[position], label[position], index, charge, truth, downsample)
        return Batch(image, label, *self._identity(entries))

    def truth(self, entry: int) -> NeutrinoTruth | None:
        """The simulation's truth about the neutrino; None if the file has no particles for the event."""
        rows = self.particles(entry)
        return truth_from_row(rows[0], self._truth.vertex_pixels(entry)) if len(rows) else None

    def particles(self, entry: int) -> Array:
        """The event's rows of the particle table; none if the file has no such table."""
        self._check_entry(entry)
        return self._truth.particles(entry)

    def _voxels(self, entry: int) -> tuple[Array, Array, Array]:
        """Positions (plane after plane), charges and labels of one event, validated."""
        self._check_entry(entry)
        positions, charge = self._image.voxels(entry)
        label_positions, label = self._label.voxels(entry)
        if not np.array_equal(positions, label_positions):
            positions, charge, label = _union(positions, charge, label_positions, label)
        if not np.isfinite(charge).all():
            raise self._damaged(entry, "has charges that are not finite")
        with np.errstate(invalid="ignore"):
            classes = label.astype(np.uint8)
        if len(classes) and (classes.max() > NEUTRINO or not np.array_equal(classes, label)):
            raise self._damaged(entry, "has labels other than 0, 1 and 2")
        return positions, charge, classes

    def _identity(self, entries: Sequence[int] | Array) -> tuple[Array, Array]:
        chosen = np.asarray(entries, np.int64)
        return chosen, self._event_ids[chosen]

    def _check_entry(self, entry: int) -> None:
        if not 0 <= entry < len(self):
            raise DataError(f"{self.path}: no event {entry}; the file holds events 0 to {len(self) - 1}.")

    def _check_labels_match(self) -> None:
        if len(self._label) != len(self) or self._label.shape != self.shape:
            raise DataError(
                f"{self.path}: {len(self)} events with charges {self.shape} but {len(self._label)} with labels "
                f"{self._label.shape}; both must agree. Write the file again."
            )

    def _read_event_ids(self) -> Array:
        if layout.EVENT_IDS not in self._file:
            return np.full((len(self), 3), -1, np.int64)
        rows = open_table(self.path, self._file, layout.EVENT_IDS, layout.EVENT_ID).rows(0, len(self))
        return np.stack([rows["run"], rows["subrun"], rows["event"]], axis=1)

    def _damaged(self, entry: int, what: str) -> DataError:
        return DataError(f"{self.path}: event {entry} {what}. The file is damaged: copy it again or generate it again.")


def check_minibatch(path: str | Path, events: int, minibatch_size: int) -> None:
    """Refuse a minibatch that the file cannot fill."""
    if not 1 <= minibatch_size <= events:
        raise DataError(
            f"run.minibatch_size={minibatch_size} cannot be drawn from {path}, which holds {events} events: "
            f"choose 1 to {events}."
        )


def _open(path: Path) -> h5py.File:
    try:
        import h5py
    except ModuleNotFoundError as error:
        raise DataError("Reading events needs h5py. Install it with pip install 'pilotage[cosmic]'.") from error
    if not path.is_file():
        raise DataError(f"No file {path}. Check data.data_directory and data.file, or use data=generated.")
    try:
        return h5py.File(path, "r")
    except PermissionError as error:
        raise DataError(f"{path}: you may not read this file. Ask its owner, or copy it.") from error
    except BlockingIOError as error:
        raise DataError(f"{path} is being written by another program. Wait for it to end, or copy the file.") from error
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> DataError:
    return DataError(
        f"{path} cannot be read as HDF5 ({error}). It is truncated, damaged or not HDF5: "
        "copy it again from its source, or generate it again."
    )


def _union(positions: Array, charge: Array, label_positions: Array, label: Array) -> tuple[Array, Array, Array]:
    """All pixels with a charge or a label; missing values are zero."""
    every = np.union1d(positions, label_positions)
    all_charge, all_label = np.zeros(len(every), np.float32), np.zeros(len(every), np.float32)
    all_charge[np.searchsorted(every, positions)] = charge
    all_label[np.searchsorted(every, label_positions)] = label
    return every, all_charge, all_label


def _pixels(positions: Array, shape: tuple[int, int], downsample: int) -> Array:
    """Positions in the flattened downsampled images, which are row-major; files are column-major."""
    height, width = shape
    # Columns are numbered across planes. Division is several times faster in 32 bits.
    column = positions.astype(np.int32) // np.int32(height)
    row = positions.astype(np.int32) - column * np.int32(height)
    plane = column // np.int32(width)
    column -= plane * np.int32(width)
    height, width = height >> downsample, width >> downsample
    return np.asarray((plane * height + (row >> downsample)) * width + (column >> downsample), np.int64)


def _scatter(image: Array, label: Array, index: Array, charge: Array, truth: Array, downsample: int) -> None:
    flat_image, flat_label = image.reshape(-1), label.reshape(-1)
    if downsample == 0:
        flat_image[index] = charge
    else:
        # Scaling by a power of two is exact, so it can come before the sum.
        np.add.at(flat_image, index, charge * np.float32(0.25**downsample))
    # The highest label wins because it is written last.
    labelled = np.flatnonzero(truth)
    index, truth = index[labelled], truth[labelled]
    for each in (COSMIC, NEUTRINO):
        flat_label[index[truth == each]] = each
