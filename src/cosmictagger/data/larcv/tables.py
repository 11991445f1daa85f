"""Reading rows of an HDF5 table, decompressed in the calling thread."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cosmictagger.data.events import Array
from cosmictagger.data.larcv.decompression import ChunkError, fastest_inflate
from cosmictagger.errors import DataError

if TYPE_CHECKING:
    import h5py

_GZIP_FILTER = 1


class Table:
    """A one-dimensional dataset whose raw chunks are decompressed here instead of in HDF5.

    HDF5 decompresses under a process-wide lock; here the lock is held only to fetch a chunk, so threads overlap. Some
    releases of h5py, such as 3.14, do not take it for that: threads then read wrong bytes, or the process aborts.
    """

    def __init__(self, path: Path, dataset: h5py.Dataset, row: np.dtype[np.void]) -> None:
        from h5py._objects import phil

        self._path, self._dataset, self._lock = path, dataset, phil
        self._row = row
        self._inflate = fastest_inflate()
        self._rows_per_chunk = self._directly_readable(row)

    def __len__(self) -> int:
        return int(self._dataset.shape[0])

    def rows(self, start: int, stop: int) -> Array:
        """Rows from start up to stop."""
        if stop > len(self):
            raise DataError(
                f"{self._path}: {self._dataset.name} has {len(self)} rows, but {stop} are needed. The file is damaged "
                "or incomplete: copy or generate it again."
            )
        try:
            return self._decompressed(start, stop) if self._rows_per_chunk else self._through_hdf5(start, stop)
        except (OSError, ChunkError, RuntimeError, ValueError, MemoryError) as error:
            raise DataError(
                f"{self._path}: rows {start} to {stop} of {self._dataset.name} cannot be read ({error}). "
                "The file is damaged: copy it again from its source, or generate it again."
            ) from error

    def _directly_readable(self, row: np.dtype[np.void]) -> int:
        """Rows per chunk if chunks are plain gzip of rows in our type; 0 means that HDF5 must read them."""
        dataset = self._dataset
        properties = dataset.id.get_create_plist()
        only_gzip = properties.get_nfilters() == 1 and properties.get_filter(0)[0] == _GZIP_FILTER
        return int(dataset.chunks[0]) if dataset.chunks and only_gzip and dataset.dtype == row else 0

    def _through_hdf5(self, start: int, stop: int) -> Array:
        stored = self._dataset[start:stop]
        if stored.dtype == self._row:
            return stored  # type: ignore[no-any-return]
        wanted = np.zeros(len(stored), self._row)
        for name in self._row.names or ():
            wanted[name] = stored[name]
        return wanted

    def _decompressed(self, start: int, stop: int) -> Array:
        size, width = self._rows_per_chunk, self._row.itemsize
        parts = []
        for number in range(start // size, -(-stop // size)):
            first = number * size
            parts.append(self._chunk(first)[max(start - first, 0) * width : (stop - first) * width])
        return np.frombuffer(b"".join(parts), self._row)

    def _chunk(self, first_row: int) -> memoryview:
        with self._lock:
            mask, raw = self._dataset.id.read_direct_chunk((first_row,))
        size = self._rows_per_chunk * self._row.itemsize
        data = raw if mask else self._inflate(raw, size)
        if len(data) != size:
            raise ValueError(f"a chunk holds {len(data)} bytes instead of {size}")
        return memoryview(data)
