import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cosmictagger.displays.windows import window_around


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 319), st.integers(0, 511)), max_size=20),
    st.none() | st.tuples(st.integers(0, 1279), st.integers(0, 2047)),
)
def test_a_window_is_within_its_image(pixels, vertex):
    classes = np.zeros((320, 512), np.uint8)
    for row, column in pixels:
        classes[row, column] = 2
    window = window_around(classes, classes.astype(np.float32), vertex, 2)
    assert window.of(classes).shape == (window.height, window.width)
    assert window.width >= 32


def test_a_window_shows_the_neutrino():
    classes = np.zeros((1280, 2048), np.uint8)
    classes[600:640, 1500:1560] = 2
    window = window_around(classes, classes.astype(np.float32), None, 0)
    assert np.count_nonzero(window.of(classes)) == np.count_nonzero(classes)


def test_a_coarse_image_shows_the_surroundings_too():
    classes = np.zeros((80, 128), np.uint8)
    classes[55, 66] = 2
    window = window_around(classes, classes.astype(np.float32), None, 4)
    assert (window.height, window.width) == (20, 32)
    assert window_around(classes[:10, :16], classes[:10, :16].astype(np.float32), None, 7).width == 16
