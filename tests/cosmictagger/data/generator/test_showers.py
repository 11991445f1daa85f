import numpy as np
import pytest

from cosmictagger.data.generator.showers import delta_rays, electrons, michel, shower
from cosmictagger.data.generator.tracks import passing

START, BEAM = np.zeros(3), np.array([0.0, 0.0, 1.0])


@pytest.mark.parametrize("photon", [False, True])
def test_the_charge_of_a_shower_grows_with_its_energy(photon):
    random = np.random.default_rng(0)
    totals = [
        np.mean([shower(random, START, BEAM, energy, photon=photon).charge.sum() for _ in range(20)])
        for energy in (200.0, 800.0)
    ]
    assert totals[1] / totals[0] == pytest.approx(4, rel=0.15)


def test_a_shower_goes_forward_and_stays_narrow():
    made = shower(np.random.default_rng(1), START, BEAM, 1000.0, photon=False)
    middle = np.average(made.points, axis=0, weights=made.charge)
    aside = np.linalg.norm(made.points[:, :2], axis=1)
    assert 20 < middle[2] < 90
    assert np.average(aside < 10, weights=made.charge) > 0.8


def test_an_electron_starts_at_once_and_a_photon_after_a_gap():
    random = np.random.default_rng(2)
    gaps = [
        np.mean([shower(random, START, BEAM, 300.0, photon=photon).points[:, 2].min() for _ in range(30)])
        for photon in (False, True)
    ]
    assert gaps[0] < 1
    assert gaps[1] > 5


def test_short_tracks_have_the_length_of_their_energy():
    made = electrons(np.random.default_rng(0), np.zeros((2, 3)), np.array([BEAM, BEAM]), np.array([21.0, 2.1]))
    assert len(made) == 100 + 10


def test_without_electrons_there_is_no_charge():
    assert len(electrons(np.random.default_rng(0), np.empty((0, 3)), np.empty((0, 3)), np.empty(0))) == 0


def test_delta_rays_start_on_their_track():
    random = np.random.default_rng(0)
    _, points = passing(random, START, BEAM, 500.0, 4000.0)
    rays = delta_rays(random, points)
    nearest = np.min(np.linalg.norm(rays.points[:, None] - points[None, ::10], axis=2), axis=1)
    assert len(rays) > 50
    assert np.median(nearest) < 2


def test_a_michel_electron_has_less_than_half_a_muon_mass():
    lengths = [len(michel(np.random.default_rng(seed), START)) * 0.1 for seed in range(50)]
    assert max(lengths) < 52.8 / 2.1 + 0.2
    assert np.mean(lengths) > 10
