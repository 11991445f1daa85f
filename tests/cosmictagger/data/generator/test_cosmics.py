import numpy as np

from cosmictagger.data.generator.cosmics import cosmic_muon
from cosmictagger.data.generator.geometry import inside


def test_muons_come_from_above_and_cross_the_volume():
    random = np.random.default_rng(0)
    falls, lengths = [], []
    for _ in range(60):
        deposits, delay = cosmic_muon(random)
        first, last = deposits.points[0], deposits.points[len(deposits) // 2]
        falls.append(first[1] - last[1])
        lengths.append(np.count_nonzero(inside(deposits.points)) * 0.1)
        assert abs(delay) <= 640
    assert np.mean(np.array(falls) > 0) > 0.9
    assert np.median(lengths) > 200
