"""Large arrays that are used again once nobody looks at them."""

from __future__ import annotations

import sys
import threading
from collections import defaultdict

import numpy as np

from cosmictagger.data.events import Array

_REFERENCES_OF_A_FREE_ARRAY = 3
"""The list of kept arrays, the variable that looks at one, and the call that counts."""


class ArrayPool:
    """Arrays of zeros for dense batches: fresh memory for each batch would cost a fifth of the reading.

    An array is handed out again only when the reference count says that no batch, view or tensor holds it, and it is
    zeroed as a whole, so whatever was done to it does not matter.
    """

    def __init__(self, most_kept: int = 5) -> None:
        self._most_kept = most_kept
        self._kept: dict[tuple[tuple[int, ...], str], list[Array]] = defaultdict(list)
        self._lock = threading.Lock()

    def zeros(self, shape: tuple[int, ...], kind: type[np.generic]) -> Array:
        """As ``numpy.zeros``."""
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
        """An array that nobody else holds; the caller holds it before the lock is given up."""
        with self._lock:
            for array in self._kept[key]:
                if sys.getrefcount(array) == _REFERENCES_OF_A_FREE_ARRAY:
                    return array
        return None
