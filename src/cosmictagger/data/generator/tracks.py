"""Tracks of muons, pions and protons, denser where they stop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosmictagger.data.events import Array
from cosmictagger.data.generator.deposits import Deposits, freed_charge
from cosmictagger.data.generator.paths import STEP, walk

MIN_LOSS = 2.1
"""Energy loss of a fast particle, MeV per centimetre."""
_SHAPE_PER_STEP = 1.6
"""Spread of the loss in one step (shape of a gamma distribution)."""


@dataclass(frozen=True, slots=True)
class Species:
    """How a kind of particle loses energy: scale x (centimetres left) ** power, in MeV per centimetre."""

    mass: float
    scale: float
    power: float

    def loss(self, left: Array) -> Array:
        """Energy loss at a distance, in centimetres, before the end."""
        return np.maximum(self.scale * np.maximum(left, STEP) ** self.power, MIN_LOSS)

    def kinetic(self, left: Array) -> Array:
        """Kinetic energy for a remaining range."""
        knee = (self.scale / MIN_LOSS) ** (-1 / self.power)
        near = self.scale / (1 + self.power) * np.minimum(left, knee) ** (1 + self.power)
        return np.asarray(near + MIN_LOSS * np.maximum(left - knee, 0))

    def range(self, kinetic: float) -> float:
        """Range for a kinetic energy."""
        grid = np.geomspace(STEP, 3000, 400)
        return float(np.interp(kinetic, self.kinetic(grid), grid))

    def momentum(self, left: Array) -> Array:
        """Momentum in MeV, bounded below to limit scattering."""
        kinetic = self.kinetic(left)
        return np.maximum(np.sqrt(kinetic * (kinetic + 2 * self.mass)), 20.0)


MUON = Species(105.7, 8.0, -0.37)
PION = Species(139.6, 8.0, -0.37)
PROTON = Species(938.3, 17.0, -0.42)


def stopping(
    random: np.random.Generator, species: Species, start: Array, direction: Array, kinetic: float, *, share: float = 1.0
) -> tuple[Deposits, Array]:
    """A track to its full range, or to a share of it; also its points in order."""
    reach = species.range(kinetic)
    left = reach - STEP * np.arange(max(1, round(reach * share / STEP)))
    points = walk(random, start[None], direction[None], species.momentum(left)[None])[0]
    return Deposits(points, fluctuating(random, species.loss(left))), points


def passing(
    random: np.random.Generator, start: Array, direction: Array, length: float, momentum: float
) -> tuple[Deposits, Array]:
    """A fast muon that crosses the volume; also its points in order."""
    steps = max(1, round(length / STEP))
    points = walk(random, start[None], direction[None], np.full((1, steps), momentum))[0]
    rise = MIN_LOSS * (1.0 + 0.06 * np.log(max(momentum / 1000, 1.0)))
    return Deposits(points, fluctuating(random, np.full(steps, rise))), points


def fluctuating(random: np.random.Generator, loss: Array) -> Array:
    """Charge of steps whose energy loss fluctuates around given values."""
    spread = random.standard_gamma(_SHAPE_PER_STEP, loss.shape) / _SHAPE_PER_STEP
    return freed_charge(loss, STEP) * spread
