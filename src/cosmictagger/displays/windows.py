"""Which part of each plane is worth a closer look."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosmictagger.data.detector import NEUTRINO
from cosmictagger.data.events import Array

_LEAST_WIDTH, _MOST_WIDTH = 192, 768
_SHAPE = 1.6
"""Width over height, as the whole images have it."""
_ROOM = 1.25


@dataclass(frozen=True, slots=True)
class Window:
    """A rectangle of an image."""

    top: int
    left: int
    height: int
    width: int

    def of(self, image: Array) -> Array:
        """The image's part inside the window."""
        return image[self.top : self.top + self.height, self.left : self.left + self.width]


def window_around(classes: Array, image: Array, vertex: tuple[int, int] | None, downsample: int) -> Window:
    """The neutrino's part of a plane: about its vertex where that is known, else about its pixels."""
    rows, columns = np.nonzero(classes == NEUTRINO)
    if len(rows) == 0:
        rows, columns = np.nonzero(image == image.max())
    if vertex is not None:
        rows, columns = np.append(rows, vertex[0] >> downsample), np.append(columns, vertex[1] >> downsample)
    # A few far spots must not decide the scale.
    top, bottom = np.percentile(rows, (3, 97))
    left, right = np.percentile(columns, (3, 97))
    wanted = _ROOM * max(right - left, _SHAPE * (bottom - top))
    width = int(np.clip(wanted, _LEAST_WIDTH >> downsample, _MOST_WIDTH >> downsample))
    width = max(16, min(width, classes.shape[1]))
    height = min(round(width / _SHAPE), classes.shape[0])
    return Window(
        _placed((top + bottom) / 2, height, classes.shape[0]),
        _placed((left + right) / 2, width, classes.shape[1]),
        height,
        width,
    )


def _placed(middle: float, length: int, whole: int) -> int:
    return int(np.clip(round(middle - length / 2), 0, whole - length))
