import numpy as np
import pytest

from cosmictagger.data.generator.geometry import inside
from cosmictagger.data.generator.neutrinos import ELECTRON_PDG, MUON_PDG, interaction, ionisation


@pytest.fixture(scope="module")
def interactions():
    random = np.random.default_rng(0)
    return [interaction(random) for _ in range(300)]


def test_flavours_and_currents_all_appear(interactions):
    kinds = {(event.pdg, event.current_type) for event in interactions}
    assert kinds == {(14, 0), (12, 0), (14, 1)}


def test_only_a_charged_current_makes_its_lepton(interactions):
    for event in interactions:
        leptons = [particle.pdg for particle in event.particles if particle.pdg in (ELECTRON_PDG, MUON_PDG)]
        assert leptons == ([event.pdg - 1] if event.current_type == 0 else [])


def test_vertices_are_inside_and_energies_are_those_of_the_beam(interactions):
    assert inside(np.array([event.vertex for event in interactions])).all()
    assert 0.7 < np.mean([event.energy for event in interactions]) / 1000 < 1.6


def test_the_outgoing_energy_does_not_exceed_the_incoming(interactions):
    for event in interactions:
        assert sum(particle.kinetic for particle in event.particles) < 1.05 * event.energy + 100


def test_directions_have_unit_length(interactions):
    lengths = [np.linalg.norm(particle.direction) for event in interactions for particle in event.particles]
    np.testing.assert_allclose(lengths, 1)


def test_charge_begins_at_the_vertex(interactions):
    random = np.random.default_rng(1)
    for event in interactions[:20]:
        parts = ionisation(random, event)
        assert len(parts) == len(event.particles) + 1
        points = np.concatenate([part.points for part in parts])
        assert np.linalg.norm(points - event.vertex, axis=1).min() < 1
