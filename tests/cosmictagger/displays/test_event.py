import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.image import imread

from cosmictagger.data.generator.event import generate_event
from cosmictagger.data.truth import truth_from_row
from cosmictagger.displays.event import draw_event
from cosmictagger.displays.rendering import COSMIC_COLOUR, MISSED_COLOUR, NEUTRINO_COLOUR
from cosmictagger.errors import DataError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def event():
    made = generate_event(21, 0)
    image, label = made.images.dense()
    return image, label, truth_from_row(made.particles[0], made.vertex_pixels)


def dots_of(image, colour):
    wanted = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)])
    return np.count_nonzero(np.all(np.abs(image[:, :, :3] * 255 - wanted) < 2, axis=2))


@pytest.mark.slow
def test_tracks_are_visible_at_full_size(event, tmp_path):
    image, label, truth = event
    path = draw_event(tmp_path / "images" / "event.png", image, label, title="Event 0", truth=truth)
    image = imread(path)
    assert image.shape[1] > 1500
    assert dots_of(image, COSMIC_COLOUR) > 3000
    assert dots_of(image, NEUTRINO_COLOUR) > 3000


@pytest.mark.slow
def test_missed_pixels_are_marked(event, tmp_path):
    image, label, truth = event
    blind = np.where(label == 2, 1, label)
    marked = [
        dots_of(imread(draw_event(tmp_path / "event.png", image, label, guess, truth=truth)), MISSED_COLOUR)
        for guess in (label, blind)
    ]
    assert marked[1] > marked[0] + 500


def test_an_empty_event_can_be_drawn(tmp_path):
    nothing = np.zeros((3, 160, 256), np.float32)
    classes = np.zeros((3, 160, 256), np.uint8)
    assert draw_event(tmp_path / "empty.png", nothing, classes, classes, downsample=3).is_file()


def test_arrays_of_other_shapes_are_refused(tmp_path):
    with pytest.raises(DataError, match="one shape"):
        draw_event(tmp_path / "no.png", np.zeros((3, 16, 16)), np.zeros((3, 16, 8)))
