import numpy as np
import pytest

from cosmictagger.data.detector import COSMIC, NEUTRINO
from cosmictagger.data.generator.deposits import Deposits
from cosmictagger.data.generator.geometry import columns, rows
from cosmictagger.data.generator.readout import Signal, arrivals, read_plane


def line(start, stop, charge=30.0):
    points = np.linspace(start, stop, 1000)
    return Deposits(points, np.full(len(points), charge))


def test_a_track_is_read_out_at_its_position():
    track = line([-150, -50, 100], [-60, 30, 300])
    arriving = arrivals([Signal(track, 0.0, NEUTRINO)])
    for plane in range(3):
        read = read_plane(np.random.default_rng(0), plane, arriving)
        mine = read.label == NEUTRINO
        assert np.count_nonzero(mine) > 200
        assert set(read.column[mine]) <= set(np.floor(columns(plane, track.points)).astype(int))
        assert abs(read.row[mine].min() - rows(track.points).min()) < 3
        assert abs(read.row[mine].max() - rows(track.points).max()) < 3


def test_a_pixel_is_labelled_by_its_true_charge():
    strong, weak = line([-100, 0, 100], [-100, 0, 300], 60.0), line([-100, 0, 100], [-100, 0, 300], 20.0)
    arriving = arrivals([Signal(strong, 0.0, COSMIC), Signal(weak, 0.0, NEUTRINO)])
    labels = read_plane(np.random.default_rng(0), 2, arriving).label
    assert np.count_nonzero(labels == COSMIC) > 100
    assert np.count_nonzero(labels == NEUTRINO) == 0


@pytest.mark.parametrize(("delay", "share"), [(0.0, 1.0), (320.0, 0.5), (640.0, 0.0), (-320.0, 0.5)])
def test_a_track_out_of_time_is_cut_where_its_half_ends(delay, share):
    track = line([-199, 0, 100], [-1, 0, 300])
    kept = arrivals([Signal(track, delay, COSMIC)])
    assert len(kept.row) / len(track) == pytest.approx(share, abs=0.02)
    assert kept.row.min(initial=0) >= 0
    assert kept.row.max(initial=0) < 640


def test_charge_outside_the_volume_is_not_read():
    assert len(arrivals([Signal(line([0, 250, 100], [0, 300, 300]), 0.0, COSMIC)]).row) == 0
