"""Electrons and photons: short tracks, blips, and showers made of both."""

from __future__ import annotations

import numpy as np

from cosmictagger.data.events import Array
from cosmictagger.data.generator.deposits import Deposits, combined
from cosmictagger.data.generator.paths import STEP, isotropic, tilted, walk
from cosmictagger.data.generator.tracks import LEAST_LOSS, fluctuating

RADIATION_LENGTH = 14.0
CRITICAL_ENERGY = 32.0
_TRACKLET_ENERGY = 14.0
_BLIP_SHARE = 0.12
_BLIP_ENERGY = 1.2
_FEWEST_MEV = 0.3


def electrons(random: np.random.Generator, start: Array, direction: Array, energy: Array) -> Deposits:
    """Short tracks (n of them) of the given energies in MeV, bending more as they slow down."""
    if len(energy) == 0:
        return combined([])
    steps = np.maximum(1, np.round(energy / LEAST_LOSS / STEP)).astype(int)
    left = energy[:, None] - LEAST_LOSS * STEP * np.arange(steps.max())
    points = walk(random, start, direction, np.maximum(left, 3.0))
    alive = np.arange(steps.max()) < steps[:, None]
    # A track shorter than a step keeps its energy all the same.
    loss = np.where(steps == 1, energy / STEP, LEAST_LOSS)[:, None] * np.ones_like(left)
    return Deposits(points[alive], fluctuating(random, loss[alive]))


def delta_rays(random: np.random.Generator, points: Array, rate: float = 0.035) -> Deposits:
    """Knock-on electrons along a track's points, few of them strong."""
    count = random.poisson(rate * STEP * len(points))
    if count == 0 or len(points) < 3:
        return combined([])
    places = random.integers(0, len(points) - 2, count)
    energy = np.minimum(1.5 / random.uniform(0.02, 1, count), 60.0)
    along = points[places + 1] - points[places]
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    angle = np.clip(1.1 / (1 + energy / 12), 0.15, 1.2)
    return electrons(random, points[places], tilted(random, along, angle), energy)


def soft_spots(random: np.random.Generator, points: Array, rate: float = 0.05) -> Deposits:
    """Weak photons that a track sends a little way off."""
    count = random.poisson(rate * STEP * len(points))
    places = points[random.integers(0, len(points), count)]
    away = isotropic(random, count) * random.exponential(5.0, count)[:, None]
    return electrons(random, places + away, isotropic(random, count), 0.05 + random.exponential(0.25, count))


def michel(random: np.random.Generator, end: Array) -> Deposits:
    """The electron of a muon that decays at rest."""
    energy = 52.8 * random.beta(3, 1.6, 1)
    return electrons(random, end[None], isotropic(random, 1), energy)


def blips(random: np.random.Generator, points: Array, mean_energy: float = _BLIP_ENERGY) -> Deposits:
    """Spots of low energy."""
    energy = _FEWEST_MEV + random.exponential(mean_energy, len(points))
    return electrons(random, points, isotropic(random, len(points)), energy)


def shower(random: np.random.Generator, start: Array, direction: Array, energy: float, *, photon: bool) -> Deposits:
    """An electromagnetic shower of so many MeV; a photon goes some way unseen and begins with a pair."""
    if photon:
        start = start + direction * random.exponential(9 / 7 * RADIATION_LENGTH)
    trunks = 2 if photon else 1
    trunk_energy = min(0.35 * energy, LEAST_LOSS * RADIATION_LENGTH * random.uniform(0.5, 1.3) * trunks)
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
    place, heading = _beside(random, start, direction, depth, 0.035, 0.9)
    tracklets = electrons(random, place, heading, np.maximum(share, _FEWEST_MEV))
    spots = random.poisson(rest * _BLIP_SHARE / (_FEWEST_MEV + _BLIP_ENERGY))
    far = RADIATION_LENGTH * random.gamma(1.5 + 0.6 * peak, 1 / 0.6, spots)
    place, _ = _beside(random, start, direction, far, 0.2, 4.0)
    return [tracklets, blips(random, place)]


def _beside(
    random: np.random.Generator, start: Array, direction: Array, depth: Array, opening: float, core: float
) -> tuple[Array, Array]:
    """Points along a shower, aside by a distance that grows with depth, and headings that lean outwards."""
    aside = random.exponential(1.0, len(depth)) * (core * 0.3 + opening * depth)
    axis = np.repeat(direction[None], len(depth), 0)
    out = tilted(random, axis, np.full(len(depth), np.pi / 2))
    place = start + axis * depth[:, None] + out * aside[:, None]
    lean = np.clip(aside / (depth + 4.0) + random.normal(0, 0.25, len(depth)), -1.2, 1.2)[:, None]
    return place, np.cos(lean) * axis + np.sin(lean) * out
