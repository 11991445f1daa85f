import numpy as np
import pytest

from cosmictagger.data.detector import COSMIC, NEUTRINO
from cosmictagger.data.downsampling import downsample_event
from cosmictagger.data.generator.event import generate_event
from cosmictagger.data.generator.geometry import WIRE_ANGLES


def same(one, other):
    pairs = zip(one.images.planes, other.images.planes, strict=True)
    images = all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for first, second in pairs
        for name in ("row", "column", "charge", "label")
    )
    return images and np.array_equal(one.particles, other.particles)


def test_an_event_depends_only_on_seed_and_number(events):
    assert same(generate_event(21, 3), events[3])
    assert not same(generate_event(22, 3), events[3])
    assert not same(events[2], events[3])


def test_images_are_thresholded_and_in_the_order_of_the_file(events):
    for event in events:
        for plane in event.images.planes:
            assert plane.charge.min() >= 5.0
            assert plane.charge.dtype == np.float32
            assert np.all(np.diff(plane.column.astype(np.int64) * 1280 + plane.row) > 0)


def test_only_columns_with_a_wire_are_filled(events):
    for number, (first, last) in enumerate(((31, 2016), (31, 2016), (191, 1856))):
        columns = np.concatenate([event.images.planes[number].column for event in events])
        assert columns.min() >= first
        assert columns.max() <= last


def test_every_event_has_a_neutrino_near_its_vertex(events):
    for event in events:
        close = 0
        for plane, (row, column) in zip(event.images.planes, event.vertex_pixels, strict=True):
            near = (np.abs(plane.row - row) < 40) & (np.abs(plane.column - column) < 40)
            close += np.count_nonzero(plane.label[near] == NEUTRINO)
        assert close > 5


def test_the_planes_see_the_same_vertex(events):
    for event in events:
        (row, u), (row_v, v), (row_w, w) = event.vertex_pixels
        assert row == row_v == row_w
        assert abs((u - 607) + (v - 607) - (w - 190)) <= 2, "two slanted wires give the upright one"


def test_the_planes_see_the_same_times_and_about_the_same_charge(events):
    for event in events:
        neutrinos = [(plane, plane.label == NEUTRINO) for plane in event.images.planes]
        totals = [plane.charge[mine].sum(dtype=np.float64) for plane, mine in neutrinos]
        times = [np.average(plane.row[mine], weights=plane.charge[mine]) for plane, mine in neutrinos]
        assert np.ptp(times) < 12
        assert max(totals) < 1.3 * min(totals)


def test_the_energy_of_each_particle_is_in_every_plane(events):
    for event in events:
        totals = [energy.values.sum(dtype=np.float64) for energy in event.energy]
        counts = [energy.counts.sum() for energy in event.energy]
        assert len({len(energy.counts) for energy in event.energy}) == 1
        assert [len(energy.ids) for energy in event.energy] == counts
        np.testing.assert_allclose(totals, totals[0], rtol=1e-5)


def best_overlap_by_charge(planes):
    """The neutrino IoU of the best selection by charge: bins in the order of their purity."""
    charge = np.concatenate([plane.charge for plane in planes])
    neutrino = np.concatenate([plane.label for plane in planes]) == NEUTRINO
    edges = np.concatenate([[0.0], np.geomspace(0.01, 5000, 300)])
    good, _ = np.histogram(charge[neutrino], edges)
    every, _ = np.histogram(charge, edges)
    order = np.argsort(-good / np.maximum(every, 1))
    taken, wrong = np.cumsum(good[order]), np.cumsum((every - good)[order])
    return np.max(taken / (good.sum() + wrong))


@pytest.mark.slow
@pytest.mark.parametrize("downsample", [0, 1, 2])
def test_the_neutrino_cannot_be_found_by_charge(downsample):
    images = [downsample_event(generate_event(5, entry).images, downsample) for entry in range(60)]
    for number in range(3):
        assert best_overlap_by_charge([event.planes[number] for event in images]) < 0.3


QUANTILES = {0: (10, 25, 50), COSMIC: (10, 25, 50, 75, 90), NEUTRINO: (10, 25, 50, 75, 90)}


@pytest.mark.slow
def test_occupancy_and_charges_are_like_the_real_ones(real_file):
    made = [generate_event(9, entry).images for entry in range(60)]
    real = [real_file.event(entry) for entry in range(5)]
    for number in range(3):
        mine, theirs = ([event.planes[number] for event in events] for events in (made, real))
        filled = np.mean([len(plane) for plane in mine]) / np.mean([len(plane) for plane in theirs])
        assert 0.75 < filled < 1.33
        for label in (0, COSMIC, NEUTRINO):
            counts = [np.mean([np.count_nonzero(plane.label == label) for plane in some]) for some in (mine, theirs)]
            assert 0.6 < counts[0] / counts[1] < 1.7, (number, label)
            charges = [
                np.concatenate([plane.charge[plane.label == label] for plane in some]) for some in (mine, theirs)
            ]
            ratios = np.divide(*(np.percentile(charge, QUANTILES[label]) for charge in charges))
            assert np.all((ratios > 0.6) & (ratios < 1.7)), (number, label, ratios)


def test_the_wires_are_vertical_or_at_sixty_degrees():
    for height, beam, _ in WIRE_ANGLES:
        assert height**2 + beam**2 == pytest.approx(1)
