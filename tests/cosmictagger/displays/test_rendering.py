import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cosmictagger.displays.rendering import agreement_map, class_map, overlap, pooled


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 7))
def test_no_pixel_is_lost_by_pooling(height, width, factor):
    image = np.zeros((height, width))
    image[-1, -1] = 1
    small = pooled(image, factor)
    assert small[-1, -1] == 1
    assert small.shape == (-(-height // factor), -(-width // factor))


def test_classes_differ_from_empty_pixels():
    image, classes = np.array([[0.0, 6.0, 6.0, 0.0]]), np.array([[0, 0, 1, 2]], np.uint8)
    assert class_map(image, classes).tolist() == [[0, 1, 2, 3]]


def test_disagreement_about_the_neutrino_is_marked():
    image = np.full((1, 4), 6.0)
    label, prediction = np.array([[2, 2, 1, 1]], np.uint8), np.array([[2, 0, 2, 1]], np.uint8)
    assert agreement_map(image, label, prediction).tolist() == [[3, 4, 5, 2]]


def test_the_overlap_of_two_empty_sets_is_one():
    label, prediction = np.array([0, 1, 1]), np.array([0, 1, 0])
    assert overlap(label, prediction, 1) == 0.5
    assert overlap(label, prediction, 2) == 1.0
