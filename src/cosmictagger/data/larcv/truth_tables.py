"""The tables of a file's neutrinos: particles and vertex pixels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cosmictagger.data.detector import PLANES
from cosmictagger.data.events import Array
from cosmictagger.data.larcv import layout
from cosmictagger.data.larcv.images import open_table

if TYPE_CHECKING:
    import h5py


class TruthTables:
    """Particles and vertices by event; a file may have neither."""

    def __init__(self, path: Path, file: h5py.File) -> None:
        particles, vertices = (make(layout.NEUTRINO_PRODUCER) for make in (layout.particle_group, layout.cluster_group))
        self._has_particles, self._has_vertices = particles in file, vertices in file
        if self._has_particles:
            self._extents = open_table(path, file, f"{particles}/extents", layout.EXTENTS)
            self._particles = open_table(path, file, f"{particles}/particles", layout.PARTICLE)
        if self._has_vertices:
            self._voxels = open_table(path, file, f"{vertices}/voxels", layout.VOXEL)
            self._clusters = open_table(path, file, f"{vertices}/cluster_extents", layout.ID_EXTENTS)
            self._meta = open_table(path, file, f"{vertices}/image_meta", layout.IMAGE_META)

    def particles(self, entry: int) -> Array:
        """An event's rows of the particle table; none if the file has no such table."""
        if not self._has_particles or entry >= len(self._extents):
            return np.empty(0, layout.PARTICLE)
        extent = self._extents.rows(entry, entry + 1)[0]
        first = int(extent["first"])
        return self._particles.rows(first, first + int(extent["N"]))

    def vertex_pixels(self, entry: int) -> tuple[tuple[int, int], ...] | None:
        """Row and column, on the full grid, of the centre of each plane's vertex cluster."""
        first = PLANES * entry
        if not self._has_vertices or len(self._clusters) < first + PLANES:
            return None
        metas = self._meta.rows(first, first + PLANES)
        pixels = []
        for extent, meta in zip(self._clusters.rows(first, first + PLANES), metas, strict=True):
            start, count = int(extent["first"]), int(extent["N"])
            if count == 0:
                return None
            height = int(meta["number_of_voxels"][1])
            column, row = divmod(int(self._voxels.rows(start, start + count)["id"][count // 2]), height)
            scale = round(float(meta["image_sizes"][1])) // height or 1
            pixels.append((row * scale, column * scale))
        return tuple(pixels)
