"""The part of each plane that the close-up shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosmictagger.data.detector import NEUTRINO
from cosmictagger.data.events import Array

_LEAST_WIDTH, _MOST_WIDTH = 192, 768
_LEAST_PIXELS = 32
"""Fewer pixels of a downsampled image show no surroundings."""
_SHAPE = 1.6
"""Width over height, as in full images."""
_ROOM = 1.25


@dataclass(frozen=True, slots=True)
class Window:
    """A rectangle of an image."""

    top: int
    left: int
    height: int
    width: int

    def of(self, image: Array) -> Array:
        """The part of an image inside the window."""
        return image[self.top : self.top + self.height, self.left : self.left + self.width]


def window_around(classes: Array, image: Array, vertex: tuple[int, int] | None, downsample: int) -> Window:
    """A window around the neutrino's pixels and its vertex, if known."""
    rows, columns = np.nonzero(classes == NEUTRINO)
    if len(rows) == 0:
        rows, columns = np.nonzero(image == image.max())
    if vertex is not None:
        rows, columns = np.append(rows, vertex[0] >> downsample), np.append(columns, vertex[1] >> downsample)
    # Ignore a few distant spots.
    top, bottom = np.percentile(rows, (3, 97))
    left, right = np.percentile(columns, (3, 97))
    wanted = _ROOM * max(right - left, _SHAPE * (bottom - top))
    width = int(np.clip(wanted, _LEAST_WIDTH >> downsample, _MOST_WIDTH >> downsample))
    width = min(max(width, _LEAST_PIXELS), classes.shape[1])
    height = min(round(width / _SHAPE), classes.shape[0])
    return Window(
        _placed((top + bottom) / 2, height, classes.shape[0]),
        _placed((left + right) / 2, width, classes.shape[1]),
        height,
        width,
    )


def _placed(middle: float, length: int, whole: int) -> int:
    return int(np.clip(round(middle - length / 2), 0, whole - length))
