"""Electrons and photons: short tracks, blips and showers."""

from __future__ import annotations

import numpy as np

from cosmictagger.data.events import Array
from cosmictagger.data.generator.deposits import Deposits, combined
from cosmictagger.data.generator.paths import STEP, isotropic, tilted, walk
from cosmictagger.data.generator.tracks import MIN_LOSS, fluctuating

RADIATION_LENGTH = 14.0
CRITICAL_ENERGY = 32.0
_TRACKLET_ENERGY = 14.0
_BLIP_SHARE = 0.12
_BLIP_ENERGY = 1.2
_MIN_MEV = 0.3


def electrons(random: np.random.Generator, start: Array, direction: Array, energy: Array) -> Deposits:
    """Short electron tracks with given energies in MeV, which scatter more as they slow down."""
    if len(energy) == 0:
        return combined([])
    steps = np.maximum(1, np.round(energy / MIN_LOSS / STEP)).astype(int)
    left = energy[:, None] - MIN_LOSS * STEP * np.arange(steps.max())
    points = walk(random, start, direction, np.maximum(left, 3.0))
    alive = np.arange(steps.max()) < steps[:, None]
    # A track shorter than a step keeps its energy.
    loss = np.where(steps == 1, energy / STEP, MIN_LOSS)[:, None] * np.ones_like(left)
    return Deposits(points[alive], fluctuating(random, loss[alive]))


def delta_rays(random: np.random.Generator, points: Array, rate: float = 0.035) -> Deposits:
    """Knock-on electrons along a track; few have high energy."""
    count = random.poisson(rate * STEP * len(points))
    if count == 0 or len(points) < 3:
        return combined([])
    positions = random.integers(0, len(points) - 2, count)
    energy = np.minimum(1.5 / random.uniform(0.02, 1, count), 60.0)
    along = points[positions + 1] - points[positions]
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    angle = np.clip(1.1 / (1 + energy / 12), 0.15, 1.2)
    return electrons(random, points[positions], tilted(random, along, angle), energy)


def soft_spots(random: np.random.Generator, points: Array, rate: float = 0.05) -> Deposits:
    """Low-energy photons near a track."""
    count = random.poisson(rate * STEP * len(points))
    positions = points[random.integers(0, len(points), count)]
    away = isotropic(random, count) * random.exponential(5.0, count)[:, None]
    return electrons(random, positions + away, isotropic(random, count), 0.05 + random.exponential(0.25, count))


def michel(random: np.random.Generator, end: Array) -> Deposits:
    """The electron of a muon decay at rest."""
    energy = 52.8 * random.beta(3, 1.6, 1)
    return electrons(random, end[None], isotropic(random, 1), energy)


def blips(random: np.random.Generator, points: Array, mean_energy: float = _BLIP_ENERGY) -> Deposits:
    """Low-energy spots."""
    energy = _MIN_MEV + random.exponential(mean_energy, len(points))
    return electrons(random, points, isotropic(random, len(points)), energy)


def shower(random: np.random.Generator, start: Array, direction: Array, energy: float, *, photon: bool) -> Deposits:
    """An electromagnetic shower of an energy in MeV; a photon converts to a pair after some distance."""
    if photon:
        start = start + direction * random.exponential(9 / 7 * RADIATION_LENGTH)
    trunks = 2 if photon else 1
    trunk_energy = min(0.35 * energy, MIN_LOSS * RADIATION_LENGTH * random.uniform(0.5, 1.3) * trunks)
    trunk = electrons(
        random,
        np.repeat(start[None], trunks, 0),
        tilted(random, np.repeat(direction[None], trunks, 0), np.full(trunks, 0.02 * (trunks - 1))),
        np.full(trunks, trunk_energy / trunks),
    )
    rest = energy - trunk_energy
    return combined([trunk, *_cascade(random, start, direction, rest, energy)])


def _cascade(random: np.random.Generator, start: Array, direction: Array, rest: float, energy: float) -> list[Deposits]:
    count = max(1, random.poisson(rest * (1 - _BLIP_SHARE) / _TRACKLET_ENERGY))
    share = random.dirichlet(np.ones(count)) * rest * (1 - _BLIP_SHARE)
    peak = max(np.log(energy / CRITICAL_ENERGY), 0.3)
    depth = RADIATION_LENGTH * random.gamma(1 + 0.6 * peak, 1 / 0.6, count)
    position, heading = _beside(random, start, direction, depth, 0.035, 0.9)
    tracklets = electrons(random, position, heading, np.maximum(share, _MIN_MEV))
    spots = random.poisson(rest * _BLIP_SHARE / (_MIN_MEV + _BLIP_ENERGY))
    far = RADIATION_LENGTH * random.gamma(1.5 + 0.6 * peak, 1 / 0.6, spots)
    position, _ = _beside(random, start, direction, far, 0.2, 4.0)
    return [tracklets, blips(random, position)]


def _beside(
    random: np.random.Generator, start: Array, direction: Array, depth: Array, opening: float, core: float
) -> tuple[Array, Array]:
    """Points along a shower, at a distance from its axis that grows with depth, and outward headings."""
    aside = random.exponential(1.0, len(depth)) * (core * 0.3 + opening * depth)
    axis = np.repeat(direction[None], len(depth), 0)
    out = tilted(random, axis, np.full(len(depth), np.pi / 2))
    position = start + axis * depth[:, None] + out * aside[:, None]
    lean = np.clip(aside / (depth + 4.0) + random.normal(0, 0.25, len(depth)), -1.2, 1.2)[:, None]
    return position, np.cos(lean) * axis + np.sin(lean) * out
