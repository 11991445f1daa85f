"""Writing events in larcv's layout; a file gets its name only when it is complete."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from cosmictagger.data.detector import HEIGHT, PLANES, WIDTH
from cosmictagger.data.events import Array, PlaneClusters
from cosmictagger.data.larcv import layout
from cosmictagger.errors import DataError


class EventWriter:
    """Appends events to a new file.

    ``producers`` are the names of the sparse images of every event, which share its pixels.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        shape: tuple[int, int] = (HEIGHT, WIDTH),
        downsample: int = 0,
        producers: Sequence[str] = (layout.IMAGE_PRODUCER, layout.LABEL_PRODUCER),
        origin: str = "",
    ) -> None:
        import h5py

        self.path = Path(path)
        self._unfinished = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")
        self._shape, self._downsample, self._producers = shape, downsample, tuple(producers)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = h5py.File(self._unfinished, "w")
        except OSError as error:
            raise DataError(f"{self.path} cannot be written ({error}). Choose another directory.") from error
        if origin:
            self._file.attrs["origin"] = origin

    def __enter__(self) -> EventWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if kind is None:
            with self._unfinished.open("rb") as written:
                os.fsync(written.fileno())
            os.replace(self._unfinished, self.path)
        else:
            self._unfinished.unlink(missing_ok=True)

    def append(
        self,
        planes: Sequence[tuple[Array, Mapping[str, Array]]],
        *,
        event_id: tuple[int, int, int] = (-1, -1, -1),
        particles: Array | None = None,
        vertex_pixels: Sequence[tuple[int, int]] | None = None,
        energy: Sequence[PlaneClusters] | None = None,
    ) -> None:
        """Append an event: for each plane, increasing pixel ids and each producer's values.

        An id is column * height + row. Vertex pixels are on the full grid; energy is in MeV, by particle.
        """
        self._extend(layout.EVENT_IDS, np.array([event_id], layout.EVENT_ID), "event_id")
        for producer in self._producers:
            self._append_images(producer, [(ids, values[producer]) for ids, values in planes])
        if particles is not None:
            self._append_particles(particles)
        if vertex_pixels is not None:
            self._append_clusters(layout.NEUTRINO_PRODUCER, self._vertex_clusters(vertex_pixels))
        if energy is not None:
            self._append_clusters(layout.ENERGY_PRODUCER, energy)

    def _append_images(self, producer: str, planes: Sequence[tuple[Array, Array]]) -> None:
        group = layout.sparse_group(producer)
        voxels = _voxels(planes)
        first = self._extend(f"{group}/voxels", voxels, "voxels")
        extents = _extents(layout.ID_EXTENTS, [len(ids) for ids, _ in planes], first)
        begin = self._extend(f"{group}/voxel_extents", extents, "extents")
        self._extend(f"{group}/image_meta", self._meta(), "image_meta")
        self._extend(f"{group}/extents", _extents(layout.EXTENTS, [PLANES], begin), "sparse_extents")

    def _append_particles(self, particles: Array) -> None:
        group = layout.particle_group(layout.NEUTRINO_PRODUCER)
        first = self._extend(f"{group}/particles", particles.astype(layout.PARTICLE, copy=False), "particles")
        self._extend(f"{group}/extents", _extents(layout.EXTENTS, [len(particles)], first), "particle_extents")

    def _append_clusters(self, producer: str, planes: Sequence[PlaneClusters]) -> None:
        group = layout.cluster_group(producer)
        voxels = _voxels([(plane.ids, plane.values) for plane in planes])
        first = self._extend(f"{group}/voxels", voxels, "voxels")
        clusters = _extents(layout.ID_EXTENTS, np.concatenate([plane.counts for plane in planes]).tolist(), first)
        clusters["ID"] = np.concatenate([np.arange(len(plane.counts)) for plane in planes])
        first = self._extend(f"{group}/cluster_extents", clusters, "extents")
        projections = _extents(layout.ID_EXTENTS, [len(plane.counts) for plane in planes], first)
        first = self._extend(f"{group}/projection_extents", projections, "extents")
        self._extend(f"{group}/image_meta", self._meta(), "image_meta")
        self._extend(f"{group}/extents", _extents(layout.EXTENTS, [PLANES], first), "sparse_extents")

    def _vertex_clusters(self, pixels: Sequence[tuple[int, int]]) -> list[PlaneClusters]:
        """A block of 3 x 3 pixels around the vertex in each plane."""
        blocks = [_block(row >> self._downsample, column >> self._downsample, self._shape) for row, column in pixels]
        return [PlaneClusters(np.array([len(ids)]), ids, np.ones(len(ids), np.float32)) for ids in blocks]

    def _meta(self) -> Array:
        height, width = self._shape
        meta = np.zeros(PLANES, layout.IMAGE_META)
        meta["valid"] = 1
        meta["projection_id"] = np.arange(PLANES)
        meta["image_sizes"] = (width << self._downsample, height << self._downsample)
        meta["number_of_voxels"] = (width, height)
        return meta

    def _extend(self, name: str, rows: Array, kind: str) -> int:
        """Append rows to a table, created on first use; returns its previous number of rows."""
        if name not in self._file:
            options: dict[str, Any] = {"compression": "gzip", "compression_opts": layout.GZIP_LEVEL}
            self._file.create_dataset(name, data=rows, chunks=(layout.CHUNKS[kind],), maxshape=(None,), **options)
            return 0
        table = self._file[name]
        before = int(table.shape[0])
        table.resize(before + len(rows), axis=0)
        table[before:] = rows
        return before


def pixel_ids(row: Array, column: Array, height: int) -> Array:
    """larcv's ids of pixels: column * height + row."""
    return column.astype(np.uint64) * np.uint64(height) + row.astype(np.uint64)


def _voxels(planes: Sequence[tuple[Array, Array]]) -> Array:
    voxels = np.zeros(sum(len(ids) for ids, _ in planes), layout.VOXEL)
    voxels["id"] = np.concatenate([ids for ids, _ in planes])
    voxels["value"] = np.concatenate([values for _, values in planes])
    return voxels


def _extents(kind: np.dtype[Any], counts: Sequence[int], first: int) -> Array:
    rows = np.zeros(len(counts), kind)
    rows["N"] = counts
    rows["first"] = first + np.cumsum([0, *counts[:-1]])
    if "ID" in (kind.names or ()):
        rows["ID"] = np.arange(len(counts))
    return rows


def _block(row: int, column: int, shape: tuple[int, int]) -> Array:
    height, width = shape
    row, column = min(max(row, 1), height - 2), min(max(column, 1), width - 2)
    return ((column + np.arange(-1, 2))[:, None] * height + row + np.arange(-1, 2)).reshape(-1)
