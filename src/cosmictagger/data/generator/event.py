"""A generated event, which depends only on a seed and its number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosmictagger.data.detector import BACKGROUND, COSMIC, HEIGHT, NEUTRINO, PLANES, WIDTH
from cosmictagger.data.events import Array, PlaneClusters, SparseEvent
from cosmictagger.data.generator.cosmics import MUONS, cosmic_muon
from cosmictagger.data.generator.geometry import HIGH, LOW, vertex_pixels
from cosmictagger.data.generator.neutrinos import interaction, ionisation
from cosmictagger.data.generator.readout import Signal, arrivals, read_plane, true_clusters
from cosmictagger.data.generator.records import particle_rows
from cosmictagger.data.generator.showers import blips

_MUONS_SHAPE = 8.0
_RADIOACTIVE_SPOTS = 14.0
_RADIOACTIVE_MEV = 0.25


@dataclass(frozen=True, eq=False, slots=True)
class GeneratedEvent:
    """The images and the truth of an event."""

    images: SparseEvent
    particles: Array
    """Rows of the particle table; the neutrino is the first."""
    vertex_pixels: tuple[tuple[int, int], ...]
    """Row and column in each plane."""
    energy: tuple[PlaneClusters, ...]
    """Each particle's energy in each plane."""


def generate_event(seed: int, entry: int) -> GeneratedEvent:
    """Generate the event with this number for a seed."""
    random = np.random.default_rng((seed, entry))
    neutrino = interaction(random)
    time = random.uniform(1600.0, 10000.0)
    signals = [Signal(part, 0.0, NEUTRINO) for part in ionisation(random, neutrino)]
    for _ in range(random.poisson(random.gamma(_MUONS_SHAPE, MUONS / _MUONS_SHAPE))):
        deposits, delay = cosmic_muon(random)
        signals.append(Signal(deposits, delay, COSMIC))
    spots = random.uniform(LOW, HIGH, (random.poisson(_RADIOACTIVE_SPOTS), PLANES))
    signals.append(Signal(blips(random, spots, _RADIOACTIVE_MEV), 0.0, BACKGROUND))
    arriving = arrivals(signals)
    planes = tuple(read_plane(random, plane, arriving) for plane in range(PLANES))
    images = SparseEvent((HEIGHT, WIDTH), planes, (1, 0, entry))
    energy = tuple(true_clusters(plane, arriving, len(signals)) for plane in range(PLANES))
    return GeneratedEvent(images, particle_rows(neutrino, time), vertex_pixels(neutrino.vertex), energy)
