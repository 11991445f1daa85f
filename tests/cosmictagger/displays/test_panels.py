"""What a panel shows: the window of the image, on the axes of the full grid, with its marks."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from cosmictagger.displays import rendering
from cosmictagger.displays.panels import Panel, colour_bar, draw, legend
from cosmictagger.displays.windows import Window

WHOLE = Window(0, 0, 20, 30)
CLOSE = Window(4, 6, 10, 16)


def axes():
    figure = Figure()
    FigureCanvasAgg(figure)
    return figure.add_axes((0.1, 0.1, 0.8, 0.8))


def panel(kind="charge", window=WHOLE, **settings):
    image = np.arange(600.0).reshape(20, 30) if kind == "charge" else np.zeros((20, 30), np.uint8)
    return Panel("Plane 0", kind, image, window, **settings)


def drawn(content):
    place = axes()
    draw(place, content)
    return place


def test_a_panel_shows_the_part_of_the_image_in_its_window():
    place = drawn(panel(window=CLOSE))
    (image,) = place.images
    np.testing.assert_array_equal(image.get_array(), np.arange(600.0).reshape(20, 30)[4:14, 6:22])
    assert tuple(image.get_extent()) == (6, 22, 14, 4)


def test_a_downsampled_image_is_shown_on_the_full_grid():
    (image,) = drawn(panel(window=CLOSE, downsample=2)).images
    assert tuple(image.get_extent()) == (24, 88, 56, 16)


def test_an_image_wider_than_the_panel_is_pooled_and_keeps_its_largest_charges():
    wide = np.zeros((8, 1500))
    wide[3, 777] = 50.0
    place = axes()
    draw(place, Panel("Plane 1", "charge", wide, Window(0, 0, 8, 1500)))
    (image,) = place.images
    assert image.get_array().shape[1] == 500
    assert image.get_array().max() == 50.0
    assert tuple(image.get_extent()) == (0, 1500, 8, 0)


@pytest.mark.parametrize(
    ("kind", "colours"), [("classes", rendering.CLASS_COLOURS), ("agreement", rendering.AGREEMENT_COLOURS)]
)
def test_each_class_has_its_colour(kind, colours):
    (image,) = drawn(panel(kind)).images
    for number, colour in enumerate(colours):
        assert to_hex(image.cmap(image.norm(number))) == to_hex(colour)


def test_no_charge_is_paper_and_the_scale_follows_the_block_size():
    (image,) = drawn(panel()).images
    assert to_hex(image.cmap(image.norm(0.5))) == to_hex(rendering.PAPER)
    (fine,), (coarse,) = drawn(panel()).images, drawn(panel(downsample=1)).images
    assert coarse.norm.vmin == fine.norm.vmin / 4
    assert coarse.norm.vmax == pytest.approx(0.6 * fine.norm.vmax)


def test_a_frame_marks_what_another_panel_enlarges():
    place = drawn(panel(downsample=1).framed(CLOSE))
    (frame,) = (patch for patch in place.patches if isinstance(patch, Rectangle))
    assert (frame.get_xy(), frame.get_width(), frame.get_height()) == ((12, 8), 32, 20)
    assert panel().frame is None


def test_the_vertex_is_marked_where_the_panel_shows_classes():
    marked = drawn(panel("classes", vertex=(7, 9)))
    (mark,) = marked.lines
    np.testing.assert_array_equal(mark.get_xydata(), [[9.5, 7.5]])
    assert marked.get_xlim() == (0, 30)
    assert marked.get_ylim() == (20, 0)
    assert not drawn(panel(vertex=(7, 9))).lines
    assert not drawn(panel("classes", window=CLOSE, vertex=(1, 1))).lines


def test_name_and_note_stand_above_the_panel():
    assert [text.get_text() for text in drawn(panel().noted("IoU 0.5")).texts] == ["Plane 0", "IoU 0.5"]
    assert [text.get_text() for text in drawn(panel()).texts] == ["Plane 0"]


def test_the_colour_bar_has_the_scale_of_the_charges():
    place = axes()
    content = panel(downsample=1)
    draw(place, content)
    colour_bar(place.figure, place, [[content]])
    (bar,) = (each for each in place.figure.axes if each is not place)
    assert bar.get_ylabel() == "charge"
    assert bar.get_ylim() == pytest.approx((place.images[0].norm.vmin, place.images[0].norm.vmax))


@pytest.mark.parametrize(("with_prediction", "entries"), [(False, 3), (True, 5)])
def test_the_legend_explains_the_colours_in_use(with_prediction, entries):
    place = axes()
    legend(place.figure, with_prediction=with_prediction)
    (found,) = place.figure.legends
    names = [text.get_text() for text in found.get_texts()]
    assert len(names) == entries
    assert ("neutrino missed" in names) is with_prediction
