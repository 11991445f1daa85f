"""The geometry of the detector: where a point appears in the three images.

The numbers reproduce the vertices and the filled columns of real events of the near detector.
"""

from __future__ import annotations

import math

import numpy as np

from cosmictagger.data.detector import HEIGHT
from cosmictagger.data.events import Array

LOW = np.array([-200.0, -200.0, 0.0])
HIGH = np.array([200.0, 200.0, 500.0])
"""Corners of the active volume in centimetres: drift, height, beam."""

WIRE_PITCH = 0.3
ROWS_PER_CENTIMETRE = 3.18
MIDDLE_ROW = HEIGHT // 2
"""The cathode: charge drifts away from it to both sides, so each half of the rows is one drift volume."""

_SINE = math.sqrt(0.75)
WIRE_ANGLES = ((-_SINE, 0.5, 607.0), (_SINE, 0.5, 607.0), (0.0, 1.0, 190.0))
"""Per plane: weight of height, weight of beam, first wire's column. Two planes at 60 degrees, one upright."""


def columns(plane: int, points: Array) -> Array:
    """The wire of a plane for each point."""
    height, beam, offset = WIRE_ANGLES[plane]
    return (height * points[:, 1] + beam * points[:, 2]) / WIRE_PITCH + offset


def rows(points: Array, delay: Array | float = 0.0) -> Array:
    """The row in which each point's charge arrives; a delay, in rows, shifts it towards the cathode."""
    side = np.where(points[:, 0] < 0, 1.0, -1.0)
    return MIDDLE_ROW + ROWS_PER_CENTIMETRE * points[:, 0] + side * delay


def inside(points: Array) -> Array:
    """Whether points are in the active volume."""
    return np.asarray(np.all((points > LOW) & (points < HIGH), axis=1))


def vertex_pixels(vertex: Array) -> tuple[tuple[int, int], ...]:
    """Row and column of one point in each plane."""
    point = vertex[None]
    return tuple((int(rows(point)[0]), int(columns(plane, point)[0])) for plane in range(len(WIRE_ANGLES)))
