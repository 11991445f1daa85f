"""Neutrino interactions: flavour, outgoing particles and their charge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosmictagger.data.events import Array
from cosmictagger.data.generator.deposits import Deposits, combined
from cosmictagger.data.generator.paths import isotropic, tilted
from cosmictagger.data.generator.showers import blips, delta_rays, michel, shower, soft_spots
from cosmictagger.data.generator.tracks import MUON, PION, PROTON, Species, stopping
from cosmictagger.data.truth import CHARGED_CURRENT, ELECTRON_NEUTRINO, MUON_NEUTRINO, NEUTRAL_CURRENT

ELECTRON_PDG, MUON_PDG, PI_ZERO_PDG, PI_PLUS_PDG, NEUTRON_PDG, PROTON_PDG = 11, 13, 111, 211, 2112, 2212
QUASIELASTIC, RESONANT = 1001, 1005
_KINDS = (
    (0.45, MUON_NEUTRINO, CHARGED_CURRENT),
    (0.35, ELECTRON_NEUTRINO, CHARGED_CURRENT),
    (0.20, MUON_NEUTRINO, NEUTRAL_CURRENT),
)
_VERTEX_LOW, _VERTEX_HIGH = np.array([-190.0, -185.0, 10.0]), np.array([190.0, 185.0, 440.0])
_BEAM = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True, eq=False, slots=True)
class Particle:
    """An outgoing particle."""

    pdg: int
    kinetic: float
    """MeV."""
    direction: Array


@dataclass(frozen=True, eq=False, slots=True)
class Interaction:
    """A neutrino and its outgoing particles."""

    pdg: int
    current_type: int
    interaction_type: int
    energy: float
    """MeV."""
    vertex: Array
    particles: tuple[Particle, ...]


def interaction(random: np.random.Generator) -> Interaction:
    """Draw flavour, energy, vertex and outgoing particles."""
    weights = [weight for weight, _, _ in _KINDS]
    _, pdg, current = _KINDS[random.choice(len(_KINDS), p=weights)]
    energy = float(np.clip(random.gamma(4.0, 300.0), 300.0, 3500.0))
    transfer = random.beta(1.6, 2.4) if current == CHARGED_CURRENT else random.beta(3.0, 2.0)
    vertex = random.uniform(_VERTEX_LOW, _VERTEX_HIGH)
    particles = _hadrons(random, energy * transfer)
    if current == CHARGED_CURRENT:
        particles = [_lepton(random, pdg, energy, transfer), *particles]
    pions = any(particle.pdg in (PI_ZERO_PDG, PI_PLUS_PDG) for particle in particles)
    return Interaction(pdg, current, RESONANT if pions else QUASIELASTIC, energy, vertex, tuple(particles))


def ionisation(random: np.random.Generator, event: Interaction) -> list[Deposits]:
    """Charge of each outgoing particle, in order, then that of spots from neutrons and the nucleus."""
    parts = [_of_particle(random, event.vertex, particle) for particle in event.particles]
    return [*parts, _spots(random, event)]


def _lepton(random: np.random.Generator, pdg: int, energy: float, transfer: float) -> Particle:
    kinetic = max(energy * (1 - transfer) - (MUON.mass if pdg == MUON_NEUTRINO else 0.5), 40.0)
    angle = np.array([min(abs(random.normal(0, 0.25 + 0.35 * np.sqrt(500 / energy))), 2.6)])
    return Particle(pdg - 1, kinetic, tilted(random, _BEAM[None], angle)[0])


def _hadrons(random: np.random.Generator, energy: float) -> list[Particle]:
    """Divide the transferred energy among protons, pions and invisible neutrons."""
    kinds = [PROTON_PDG] * (1 + random.poisson(0.8 + energy / 1500))
    kinds += [NEUTRON_PDG] * random.poisson(0.8)
    if energy > 300:
        kinds += [PI_PLUS_PDG] * random.poisson(0.4 * min(energy / 500, 2))
        kinds += [PI_ZERO_PDG] * random.poisson(0.3 * min(energy / 500, 2))
    weights = np.array([{PROTON_PDG: 0.5, NEUTRON_PDG: 0.4}.get(kind, 1.6) for kind in kinds])
    masses = sum(135.0 for kind in kinds if kind in (PI_PLUS_PDG, PI_ZERO_PDG))
    shares = random.dirichlet(weights * 2) * max(energy - masses, 60.0)
    protons = np.array(kinds) == PROTON_PDG
    # The nucleus keeps part of its protons' energy.
    shares[protons] *= random.uniform(0.35, 0.8, np.count_nonzero(protons))
    spread = np.where(protons, 0.9, 0.7)
    angles = np.minimum(np.abs(random.normal(0, spread)), np.pi)
    headings = tilted(random, np.repeat(_BEAM[None], len(kinds), 0), angles)
    return [Particle(kind, float(share), way) for kind, share, way in zip(kinds, shares, headings, strict=True)]


def _of_particle(random: np.random.Generator, vertex: Array, particle: Particle) -> Deposits:
    if particle.pdg == ELECTRON_PDG:
        return shower(random, vertex, particle.direction, particle.kinetic, photon=False)
    if particle.pdg == PI_ZERO_PDG:
        return _two_photons(random, vertex, particle)
    if particle.pdg == NEUTRON_PDG:
        return combined([])
    return _of_track(random, vertex, particle)


def _of_track(random: np.random.Generator, vertex: Array, particle: Particle) -> Deposits:
    species: Species = {MUON_PDG: MUON, PI_PLUS_PDG: PION}.get(particle.pdg, PROTON)
    reach = species.range(particle.kinetic)
    # Hadrons often hit a nucleus before they stop.
    share = 1.0 if species is MUON else min(1.0, random.exponential(80.0) / max(reach, 1.0) + 0.1)
    track, points = stopping(random, species, vertex, particle.direction, particle.kinetic, share=share)
    parts = [track]
    if species is not PROTON:
        parts += [delta_rays(random, points), soft_spots(random, points)]
        if share == 1.0:
            parts.append(michel(random, points[-1]))
    return combined(parts)


def _two_photons(random: np.random.Generator, vertex: Array, particle: Particle) -> Deposits:
    total = particle.kinetic + 135.0
    half = np.arcsin(np.clip(67.5 / (total * 0.5), 0, 1))
    axis = np.repeat(particle.direction[None], 2, 0)
    first = tilted(random, axis[:1], np.array([half]))
    second = 2 * np.cos(half) * axis[:1] - first
    share = random.uniform(0.25, 0.75)
    return combined(
        [
            shower(random, vertex, way / np.linalg.norm(way), total * part, photon=True)
            for way, part in ((first[0], share), (second[0], 1 - share))
        ]
    )


def _spots(random: np.random.Generator, event: Interaction) -> Deposits:
    """Photons of the nucleus near the vertex, and protons hit by neutrons far from it."""
    near = random.poisson(3.0)
    neutrons = sum(particle.pdg == NEUTRON_PDG for particle in event.particles)
    far = random.poisson(2.5 * neutrons)
    distance = np.concatenate([random.exponential(12.0, near), random.exponential(35.0, far)])
    positions = event.vertex + isotropic(random, near + far) * distance[:, None]
    return blips(random, positions, 2.0)
