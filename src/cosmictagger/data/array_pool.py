"""A pool of large arrays, reused once nothing refers to them."""

from __future__ import annotations

import sys
import threading
from collections import defaultdict

import numpy as np

from cosmictagger.data.events import Array

_REFERENCES_OF_A_FREE_ARRAY = 3
"""The references of the pool's list, of the loop variable and of the counting call."""


class ArrayPool:
    """Arrays of zeros for dense batches: allocating each batch would take a fifth of the reading time.

    An array is reused only when its reference count shows that no batch, view or tensor holds it, and it is zeroed
    before that.
    """

    def __init__(self, most_kept: int = 5) -> None:
        self._most_kept = most_kept
        self._kept: dict[tuple[tuple[int, ...], str], list[Array]] = defaultdict(list)
        self._lock = threading.Lock()

    def zeros(self, shape: tuple[int, ...], kind: type[np.generic]) -> Array:
        """Like ``numpy.zeros``."""
        key = shape, np.dtype(kind).str
        array = self._free(key)
        if array is not None:
            array.fill(0)
            return array
        array = np.zeros(shape, kind)
        with self._lock:
            if len(self._kept[key]) < self._most_kept:
                self._kept[key].append(array)
        return array

    def _free(self, key: tuple[tuple[int, ...], str]) -> Array | None:
        """An unused array; the caller refers to it before the lock is released."""
        with self._lock:
            for array in self._kept[key]:
                if sys.getrefcount(array) == _REFERENCES_OF_A_FREE_ARRAY:
                    return array
        return None
