"""Rows of the particle table for a generated interaction."""

from __future__ import annotations

import numpy as np

from cosmictagger.data.events import Array
from cosmictagger.data.generator.neutrinos import Interaction, Particle
from cosmictagger.data.larcv import layout

_MASSES = {11: 0.511, 13: 105.7, 111: 135.0, 211: 139.6, 2112: 939.6, 2212: 938.3}
_NO_PARENT = 2**32 - 1
_NO_INDEX = 2**16 - 1
_TRACK_SHAPE = 2


def particle_rows(event: Interaction, time: float) -> Array:
    """The neutrino, then the outgoing particles; energies are total energies in GeV, as in larcv."""
    rows = np.zeros(1 + len(event.particles), layout.PARTICLE)
    rows["id"] = np.arange(len(rows))
    rows["mcst_index"] = rows["mct_index"] = _NO_INDEX
    rows["shape"] = _TRACK_SHAPE
    rows["current_type"] = rows["interaction_type"] = -1
    rows["trackid"] = np.arange(len(rows))
    rows["process"] = b"primary"
    rows["dist_travel"] = -1.0
    rows["parent_trackid"][0] = _NO_PARENT
    rows["ancestor_trackid"] = _NO_PARENT
    for name, value in zip("xyzt", (*event.vertex, time), strict=True):
        rows["vtx"][name] = value
    rows[0]["pdg"], rows[0]["current_type"] = event.pdg, event.current_type
    rows[0]["interaction_type"] = event.interaction_type
    rows[0]["energy_init"] = rows[0]["pz"] = event.energy / 1000
    for row, particle in zip(rows[1:], event.particles, strict=True):
        _fill(row, particle)
    return rows


def _fill(row: Array, particle: Particle) -> None:
    energy = (particle.kinetic + _MASSES[particle.pdg]) / 1000
    momentum = np.sqrt(energy**2 - (_MASSES[particle.pdg] / 1000) ** 2) * particle.direction
    row["pdg"], row["energy_init"] = particle.pdg, energy
    row["px"], row["py"], row["pz"] = momentum
