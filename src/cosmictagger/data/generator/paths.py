"""Paths of charged particles with multiple scattering."""

from __future__ import annotations

import numpy as np

from cosmictagger.data.events import Array

STEP = 0.1
"""Centimetres between deposits: a third of a wire pitch."""

_KICK = 1.15
"""Multiple scattering in liquid argon: standard angle of one step times the momentum in MeV."""


def walk(random: np.random.Generator, start: Array, direction: Array, momentum: Array) -> Array:
    """Points (particles, steps, 3) of paths from start (particles, 3); momentum is (particles, steps)."""
    first, second = _across(direction)
    kicks = random.standard_normal((2, *momentum.shape)) * (_KICK / momentum)
    turned = np.cumsum(kicks, axis=2)[..., None]
    heading = direction[:, None] + turned[0] * first[:, None] + turned[1] * second[:, None]
    heading /= np.linalg.norm(heading, axis=2, keepdims=True)
    return start[:, None] + STEP * np.cumsum(heading, axis=1)


def tilted(random: np.random.Generator, direction: Array, angle: Array) -> Array:
    """Directions (n, 3) at given angles from given directions, with random azimuth."""
    first, second = _across(direction)
    azimuth = random.uniform(0, 2 * np.pi, len(direction))[:, None]
    aside = np.cos(azimuth) * first + np.sin(azimuth) * second
    return np.asarray(np.cos(angle)[:, None] * direction + np.sin(angle)[:, None] * aside)


def isotropic(random: np.random.Generator, count: int) -> Array:
    """Isotropic directions."""
    vectors = random.standard_normal((count, 3))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def _across(direction: Array) -> tuple[Array, Array]:
    """Two unit vectors perpendicular to each direction and to each other."""
    helper = np.where(np.abs(direction[:, :1]) < 0.9, [[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]])
    first = np.cross(direction, helper)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    return first, np.cross(direction, first)
