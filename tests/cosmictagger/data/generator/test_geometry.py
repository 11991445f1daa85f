import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cosmictagger.data.generator.geometry import HIGH, LOW, columns, inside, rows, vertex_pixels

POINTS = st.tuples(*(st.floats(low + 1, high - 1) for low, high in zip(LOW, HIGH, strict=True))).map(np.array)


def test_real_vertices_appear_where_the_real_images_have_them(real_file):
    for entry in range(5):
        truth = real_file.truth(entry)
        distance = np.array(vertex_pixels(np.array(truth.vertex))) - np.array(truth.pixels)
        assert np.abs(distance).max() <= 3


@settings(max_examples=40, deadline=None)
@given(POINTS)
def test_points_inside_fall_on_the_wires_that_exist(point):
    assert inside(point[None])[0]
    places = [columns(plane, point[None])[0] for plane in range(3)]
    assert 29 < places[0] < 2019
    assert 29 < places[1] < 2019
    assert 190 <= places[2] < 1857
    assert 0 <= rows(point[None])[0] < 1280


@settings(max_examples=40, deadline=None)
@given(POINTS)
def test_each_half_of_the_rows_is_one_drift_volume(point):
    assume(abs(point[0]) > 1e-6)
    assert (rows(point[None])[0] < 640) == (point[0] < 0)


@settings(max_examples=40, deadline=None)
@given(POINTS, st.floats(1, 300))
def test_late_charge_appears_nearer_to_the_cathode(point, delay):
    late, early = rows(point[None], delay)[0], rows(point[None])[0]
    assert late - early == pytest.approx(delay if point[0] < 0 else -delay)
