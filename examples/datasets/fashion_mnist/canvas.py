"""A stack of small canvases on which shapes are drawn at once, each with its own parameters.

A shape is a signed distance: negative inside, positive outside, in units of half a picture. Shapes are joined with
``np.minimum``, cut out of one another with ``np.maximum(shape, -hole)``, and turned into grey by ``coverage``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from examples.datasets.fashion_mnist.files import SIDE

Numbers = NDArray[np.floating]
"""One number for each canvas, of shape (count, 1, 1), or one for each pixel, of shape (count, 28, 28)."""


@dataclass(frozen=True, slots=True, eq=False)
class Canvas:
    """Coordinates of every pixel: x to the right and y downwards, both from -1 to 1."""

    x: Numbers
    y: Numbers
    random: np.random.Generator

    @property
    def count(self) -> int:
        """How many pictures are drawn at once."""
        return len(self.x)

    def draw(self, low: float, high: float) -> Numbers:
        """A number between ``low`` and ``high`` for each picture."""
        return self.random.uniform(low, high, (self.count, 1, 1)).astype(np.float32)

    def sometimes(self, probability: float) -> Numbers:
        """One for a fraction of the pictures, zero for the others."""
        return (self.random.random((self.count, 1, 1)) < probability).astype(np.float32)

    def box(self, centre_x: Numbers, centre_y: Numbers, half_width: Numbers, half_height: Numbers) -> Numbers:
        """An upright rectangle."""
        across = np.abs(self.x - centre_x) - half_width
        down = np.abs(self.y - centre_y) - half_height
        return np.maximum(across, down)

    def column(self, top: Numbers, bottom: Numbers, width_at_top: Numbers, width_at_bottom: Numbers) -> Numbers:
        """A symmetric trapezium; widths are halves."""
        along = np.clip((self.y - top) / (bottom - top), 0, 1)
        across = np.abs(self.x) - (width_at_top + (width_at_bottom - width_at_top) * along)
        return np.maximum(across, np.maximum(top - self.y, self.y - bottom))

    def limb(
        self, start: tuple[Numbers, Numbers], end: tuple[Numbers, Numbers], thick: Numbers, thin: Numbers
    ) -> Numbers:
        """A rounded bar from ``start`` to ``end``; thicknesses are halves."""
        (start_x, start_y), (end_x, end_y) = start, end
        length_x, length_y = end_x - start_x, end_y - start_y
        along = ((self.x - start_x) * length_x + (self.y - start_y) * length_y) / (length_x**2 + length_y**2)
        along = np.clip(along, 0, 1)
        away = np.hypot(self.x - start_x - along * length_x, self.y - start_y - along * length_y)
        return away - (thick + (thin - thick) * along)

    def mirrored(self) -> Canvas:
        """The same canvas folded along its middle, so that what is drawn on the right also appears on the left."""
        return Canvas(np.abs(self.x), self.y, self.random)

    def ellipse(self, centre_x: Numbers, centre_y: Numbers, radius_x: Numbers, radius_y: Numbers) -> Numbers:
        """An upright ellipse."""
        away = np.hypot((self.x - centre_x) / radius_x, (self.y - centre_y) / radius_y) - 1
        return np.asarray(away * np.minimum(radius_x, radius_y))


def coverage(distance: Numbers) -> Numbers:
    """How much of each pixel lies inside a shape, from 0 to 1."""
    return np.asarray(np.clip(0.5 - distance * (SIDE / 2), 0, 1))


def blended(one: Numbers, other: Numbers, radius: float) -> Numbers:
    """Two shapes joined with a rounded inner corner."""
    nearness = np.maximum(radius - np.abs(one - other), 0) / radius
    return np.asarray(np.minimum(one, other) - nearness**2 * (radius / 4))


def posed(count: int, random: np.random.Generator) -> Canvas:
    """Canvases that are randomly shifted, rotated, slanted and stretched a little."""
    place = ((np.arange(SIDE, dtype=np.float32) + 0.5) / (SIDE / 2) - 1).astype(np.float32)
    upright = Canvas(
        np.broadcast_to(place[None, None, :], (count, SIDE, SIDE)),
        np.broadcast_to(place[None, :, None], (count, SIDE, SIDE)),
        random,
    )
    draw = upright.draw
    x, y = upright.x - draw(-0.1, 0.1), upright.y - draw(-0.07, 0.07)
    angle = draw(-0.12, 0.12)
    x, y = np.cos(angle) * x + np.sin(angle) * y, np.cos(angle) * y - np.sin(angle) * x
    size = draw(0.8, 1.08)
    x, y = (x + draw(-0.08, 0.08) * y) / (size * draw(0.88, 1.12)), y / size
    return Canvas(x, y, random)
