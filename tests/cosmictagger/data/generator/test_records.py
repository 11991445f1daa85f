import numpy as np
import pytest

from cosmictagger.data.generator.neutrinos import interaction
from cosmictagger.data.generator.records import particle_rows


def test_the_neutrino_is_the_first_row_and_its_particles_follow():
    event = interaction(np.random.default_rng(4))
    rows = particle_rows(event, 3000.0)
    assert rows["pdg"].tolist() == [event.pdg, *(particle.pdg for particle in event.particles)]
    assert rows["current_type"].tolist() == [event.current_type] + [-1] * len(event.particles)
    assert rows["energy_init"][0] * 1000 == pytest.approx(event.energy)
    assert np.array_equal(rows["vtx"]["z"], np.full(len(rows), event.vertex[2]))
    assert set(rows["process"]) == {b"primary"}


def test_energy_includes_the_mass():
    event = interaction(np.random.default_rng(4))
    rows = particle_rows(event, 3000.0)[1:]
    momentum = np.sqrt(rows["px"] ** 2 + rows["py"] ** 2 + rows["pz"] ** 2)
    assert np.all(rows["energy_init"] > momentum)
