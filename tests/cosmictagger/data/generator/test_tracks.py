import numpy as np
import pytest

from cosmictagger.data.generator.paths import STEP
from cosmictagger.data.generator.tracks import MUON, PROTON, passing, stopping

START, UP = np.zeros(3), np.array([0.0, 1.0, 0.0])


@pytest.mark.parametrize(
    ("species", "kinetic", "reach"), [(MUON, 300.0, 134.0), (PROTON, 100.0, 7.4), (PROTON, 200.0, 24.0)]
)
def test_ranges_are_those_in_liquid_argon(species, kinetic, reach):
    assert species.range(kinetic) == pytest.approx(reach, rel=0.25)


def test_range_and_energy_are_inverse():
    for reach in (1.0, 20.0, 300.0):
        assert MUON.range(float(MUON.kinetic(np.array([reach]))[0])) == pytest.approx(reach, rel=0.02)


def test_a_stopping_track_thickens_at_its_end():
    track, points = stopping(np.random.default_rng(0), MUON, START, UP, 250.0)
    per_step = track.charge.reshape(-1)
    assert per_step[-30:].mean() > 1.7 * per_step[: len(per_step) // 2].mean()
    assert np.array_equal(points, track.points)


def test_a_proton_is_denser_than_a_muon():
    random = np.random.default_rng(0)
    proton, _ = stopping(random, PROTON, START, UP, 150.0)
    muon, _ = passing(random, START, UP, 50.0, 5000.0)
    assert proton.charge.mean() > 2 * muon.charge.mean()


def test_a_fast_muon_is_straight_and_minimum_ionising():
    track, points = passing(np.random.default_rng(0), START, UP, 400.0, 5000.0)
    assert len(track) == round(400 / STEP)
    assert points[-1][1] == pytest.approx(400, rel=0.01)
    assert np.linalg.norm(points[-1][[0, 2]]) < 20
    assert track.charge.sum() / 400 == pytest.approx(260, rel=0.15)


def test_a_track_can_end_after_a_fraction_of_its_range():
    whole, _ = stopping(np.random.default_rng(0), PROTON, START, UP, 200.0)
    part, _ = stopping(np.random.default_rng(0), PROTON, START, UP, 200.0, share=0.5)
    assert len(part) == pytest.approx(len(whole) / 2, abs=1)
