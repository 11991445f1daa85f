"""Cosmic muons at any time of the readout, and their secondaries."""

from __future__ import annotations

import numpy as np

from cosmictagger.data.detector import HEIGHT
from cosmictagger.data.events import Array
from cosmictagger.data.generator.deposits import Deposits, combined
from cosmictagger.data.generator.geometry import HIGH, LOW
from cosmictagger.data.generator.showers import delta_rays, michel, shower, soft_spots
from cosmictagger.data.generator.tracks import MUON, passing, stopping

MUONS = 7.3
"""Mean number of muons that cross the volume in a readout."""
_STOPPING_SHARE = 0.12
_RADIATED_SHOWERS_PER_CENTIMETRE = 0.00015


def cosmic_muon(random: np.random.Generator) -> tuple[Deposits, float]:
    """One muon with its secondaries, and its delay in rows."""
    start, direction, length = _chord(random)
    delay = random.uniform(-HEIGHT / 2, HEIGHT / 2)
    if random.random() < _STOPPING_SHARE:
        kinetic = float(MUON.kinetic(np.array([length * random.uniform(0.2, 0.95)]))[0])
        track, points = stopping(random, MUON, start, direction, kinetic)
        return combined(
            [track, delta_rays(random, points), soft_spots(random, points), michel(random, points[-1])]
        ), delay
    momentum = 1000 * (1.5 + random.exponential(5.0))
    track, points = passing(random, start, direction, length, momentum)
    return combined(
        [track, delta_rays(random, points), soft_spots(random, points), *_radiated(random, points, direction, momentum)]
    ), delay


def _radiated(random: np.random.Generator, points: Array, direction: Array, momentum: float) -> list[Deposits]:
    """Showers of photons that a fast muon radiates."""
    count = random.poisson(_RADIATED_SHOWERS_PER_CENTIMETRE * 0.1 * len(points))
    energies = np.minimum(40 / random.uniform(0.05, 1, count), 0.3 * momentum)
    positions = points[random.integers(0, len(points), count)]
    return [
        shower(random, position, direction, float(energy), photon=True)
        for position, energy in zip(positions, energies, strict=True)
    ]


def _chord(random: np.random.Generator) -> tuple[Array, Array, float]:
    """Entry point, direction and path length of a muon."""
    through = random.uniform(LOW, HIGH)
    direction = _downward(random)
    to_low, to_high = (LOW - through) / direction, (HIGH - through) / direction
    enter = np.max(np.minimum(to_low, to_high))
    leave = np.min(np.maximum(to_low, to_high))
    return through + enter * direction, direction, float(leave - enter)


def _downward(random: np.random.Generator) -> Array:
    """Zenith angles at ground level: cosine squared."""
    cosine = random.uniform(0.01, 1) ** (1 / 2)
    sine, azimuth = np.sqrt(1 - cosine**2), random.uniform(0, 2 * np.pi)
    direction = np.array([sine * np.cos(azimuth), -cosine, sine * np.sin(azimuth)])
    return np.where(np.abs(direction) < 1e-9, 1e-9, direction)
