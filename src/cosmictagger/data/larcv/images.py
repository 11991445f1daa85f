"""One producer's sparse images in a file: the rows of each event and plane."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cosmictagger.data.detector import PLANES
from cosmictagger.data.events import Array
from cosmictagger.data.larcv import layout
from cosmictagger.data.larcv.tables import Table
from cosmictagger.errors import DataError

if TYPE_CHECKING:
    import h5py


def open_table(path: Path, file: h5py.File, name: str, row: np.dtype[np.void]) -> Table:
    """Open a table and check its fields."""
    if name not in file:
        raise DataError(
            f"{path}: no table {name}. It is not a CosmicTagger file of larcv3, or another producer wrote it: "
            f"found {', '.join(sorted(file.get('Data', file))) or 'nothing'}."
        )
    dataset = file[name]
    missing = [field for field in row.names or () if field not in (dataset.dtype.names or ())]
    if missing or dataset.ndim != 1:
        raise DataError(
            f"{path}: the table {name} has no field {', '.join(missing) or '(it is not one-dimensional)'}. "
            "Only files of larcv3 are supported."
        )
    return Table(path, dataset, row)


class ProducerImages:
    """The voxels of one producer, by event and plane."""

    def __init__(self, path: Path, file: h5py.File, producer: str) -> None:
        group = layout.sparse_group(producer)
        self._path, self._group = path, group
        self._voxels = open_table(path, file, f"{group}/voxels", layout.VOXEL)
        extents = _all_rows(open_table(path, file, f"{group}/extents", layout.EXTENTS))
        planes = _all_rows(open_table(path, file, f"{group}/voxel_extents", layout.ID_EXTENTS))
        meta = _all_rows(open_table(path, file, f"{group}/image_meta", layout.IMAGE_META))
        self.first, self.count = self._plane_extents(extents, planes)
        self.shape = self._common_shape(meta)

    def __len__(self) -> int:
        return len(self.first)

    def voxels(self, entry: int) -> tuple[Array, Array]:
        """Positions and values of one event's pixels, plane after plane.

        A position is the pixel's id plus the sizes of the preceding images, int64.
        """
        first, count = self.first[entry], self.count[entry]
        if np.array_equal(first[1:], first[:-1] + count[:-1]):
            rows = self._voxels.rows(int(first[0]), int(first[-1] + count[-1]))
            ids, values = rows["id"].astype(np.int64), np.ascontiguousarray(rows["value"])
        else:
            parts = [
                self._voxels.rows(int(start), int(start + length)) for start, length in zip(first, count, strict=True)
            ]
            ids = np.concatenate([part["id"] for part in parts]).astype(np.int64)
            values = np.concatenate([part["value"] for part in parts])
        return self._positions(entry, ids, count), values

    def _positions(self, entry: int, ids: Array, count: Array) -> Array:
        """Offset the ids of each plane, and validate them."""
        size = self.shape[0] * self.shape[1]
        if len(ids) and not 0 <= ids.min() <= ids.max() < size:
            raise self._damaged(f"event {entry} has a pixel outside its image of {self.shape[0]} x {self.shape[1]}")
        ids += np.repeat(np.arange(PLANES) * size, count)
        if not (ids[1:] > ids[:-1]).all():
            raise self._damaged(f"event {entry} has pixels out of order")
        return ids

    def _plane_extents(self, extents: Array, planes: Array) -> tuple[Array, Array]:
        """First row and number of rows of each (event, plane), ordered by projection."""
        if np.any(extents["N"] != PLANES):
            wrong = int(np.flatnonzero(extents["N"] != PLANES)[0])
            raise self._damaged(f"event {wrong} has {extents['N'][wrong]} planes instead of {PLANES}")
        rows = extents["first"][:, None].astype(np.int64) + np.arange(PLANES)
        if len(rows) and rows.max() >= len(planes):
            raise self._damaged(f"voxel_extents has {len(planes)} rows, but the events need {rows.max() + 1}")
        of_event = planes[rows]
        order = np.argsort(of_event["ID"], axis=1, kind="stable")
        of_event = np.take_along_axis(of_event, order, axis=1)
        if np.any(of_event["ID"] != np.arange(PLANES)):
            raise self._damaged("the planes of an event are not numbered 0, 1 and 2")
        first, count = of_event["first"].astype(np.int64), of_event["N"].astype(np.int64)
        if len(first) and (first + count).max() > len(self._voxels):
            raise self._damaged(f"voxels has {len(self._voxels)} rows, but the planes need {(first + count).max()}")
        return first, count

    def _common_shape(self, meta: Array) -> tuple[int, int]:
        if len(self) == 0:
            raise self._damaged("no events")
        if len(meta) < len(self) * PLANES:
            raise self._damaged(f"image_meta has {len(meta)} rows for {len(self)} events of {PLANES} planes")
        sizes = np.unique(meta["number_of_voxels"], axis=0)
        if len(sizes) != 1:
            raise self._damaged(f"{len(sizes)} different image sizes in one file; all must be equal")
        return int(sizes[0][1]), int(sizes[0][0])

    def _damaged(self, what: str) -> DataError:
        return DataError(
            f"{self._path}: {self._group}: {what}. The file is damaged or incomplete: copy or generate it again."
        )


def _all_rows(table: Table) -> Array:
    return table.rows(0, len(table))
