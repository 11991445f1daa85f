import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosmictagger.data.downsampling import check_downsample, downsample_event, merge
from cosmictagger.data.events import SparseEvent, SparsePlane
from cosmictagger.errors import DataError

SHAPE = (32, 64)
DOWNSAMPLES = st.integers(0, 4)


@st.composite
def planes(draw):
    ids = draw(st.lists(st.integers(0, SHAPE[0] * SHAPE[1] - 1), unique=True, max_size=60).map(sorted))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    column, row = np.divmod(np.array(ids, np.int32), SHAPE[0])
    charge = random.uniform(5, 3000, len(ids)).astype(np.float32)
    return SparsePlane(row, column, charge, random.integers(0, 3, len(ids), np.uint8))


def blocks(image, factor):
    planes, height, width = image.shape
    return image.reshape(planes, height // factor, factor, width // factor, factor)


@settings(max_examples=40, deadline=None)
@given(st.tuples(planes(), planes(), planes()), DOWNSAMPLES)
def test_charge_is_averaged_and_the_highest_label_is_kept(three, downsample):
    event = SparseEvent(SHAPE, three)
    image, label = event.dense()
    coarse_image, coarse_label = downsample_event(event, downsample).dense()
    mean = blocks(image.astype(np.float64), 2**downsample).mean(axis=(2, 4))
    np.testing.assert_allclose(coarse_image, mean, rtol=1e-5)
    assert np.array_equal(coarse_label, blocks(label, 2**downsample).max(axis=(2, 4)))


@settings(max_examples=40, deadline=None)
@given(planes(), st.integers(1, 4))
def test_charges_are_added_one_by_one_in_single_precision(plane, downsample):
    coarse = downsample_event(SparseEvent(SHAPE, (plane,) * 3), downsample).planes[0]
    sums: dict[tuple[int, int], np.float32] = {}
    for row, column, charge in zip(plane.row, plane.column, plane.charge, strict=True):
        place = (row >> downsample, column >> downsample)
        sums[place] = sums.get(place, np.float32(0)) + charge
    for row, column, charge in zip(coarse.row, coarse.column, coarse.charge, strict=True):
        assert charge == sums[row, column] / np.float32(4**downsample)
    assert len(coarse) == len(sums)


@settings(max_examples=40, deadline=None)
@given(planes(), st.integers(0, 2), st.integers(0, 2))
def test_halving_twice_equals_quartering(plane, first, second):
    event = SparseEvent(SHAPE, (plane,) * 3)
    twice = downsample_event(downsample_event(event, first), second)
    once = downsample_event(event, first + second)
    assert np.array_equal(twice.dense()[1], once.dense()[1])
    np.testing.assert_allclose(twice.dense()[0], once.dense()[0], rtol=1e-5)


@settings(max_examples=40, deadline=None)
@given(planes(), st.integers(1, 4))
def test_pixels_stay_in_the_order_of_the_file(plane, downsample):
    coarse = downsample_event(SparseEvent(SHAPE, (plane,) * 3), downsample).planes[0]
    ids = coarse.column.astype(np.int64) * (SHAPE[0] >> downsample) + coarse.row
    assert np.all(np.diff(ids) > 0)


def test_no_downsampling_returns_the_same_event():
    plane = SparsePlane(*(np.zeros(1, kind) for kind in (np.int32, np.int32, np.float32, np.uint8)))
    event = SparseEvent(SHAPE, (plane,) * 3)
    assert downsample_event(event, 0) is event


def test_an_empty_event_stays_empty():
    empty = np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.uint8)
    assert [len(part) for part in merge(*empty, scale=0.25, size=4)] == [0, 0, 0]


@pytest.mark.parametrize("downsample", [-1, 8, 20])
def test_a_downsampling_that_does_not_divide_the_image_is_refused(downsample):
    with pytest.raises(DataError, match=f"data.downsample={downsample}"):
        check_downsample(downsample, (1280, 2048))


def test_a_side_must_be_divisible():
    with pytest.raises(DataError, match="does not divide images of 12 x 64"):
        check_downsample(3, (12, 64))
