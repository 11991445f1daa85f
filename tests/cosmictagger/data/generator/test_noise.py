import numpy as np
import pytest

from cosmictagger.data.generator.noise import THRESHOLD, noise


@pytest.mark.parametrize("plane", [0, 1, 2])
def test_noise_is_above_threshold_and_on_existing_wires(plane):
    made = noise(np.random.default_rng(0), plane)
    assert made.charge.min() >= THRESHOLD
    assert np.median(made.charge) < 6
    assert made.row.min() >= 0
    assert made.row.max() < 1280


def test_induction_planes_are_noisy_in_opposite_halves():
    shares = [np.mean(noise(np.random.default_rng(0), plane).row < 640) for plane in (0, 1)]
    assert shares[0] < 0.2
    assert shares[1] > 0.8


def test_the_collection_plane_is_quiet():
    induction, collection = (len(noise(np.random.default_rng(0), plane).row) for plane in (0, 2))
    assert collection < induction / 20
