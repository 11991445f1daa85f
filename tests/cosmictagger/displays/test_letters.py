"""Pictures for terminals."""

import re

import numpy as np

from cosmictagger.displays.letters import painted, picture, side_by_side

EMPTY, COSMIC, NEUTRINO = 234, 75, 214


def colours(lines):
    """The colours of a picture's pixels, row by row."""
    rows = []
    for line in lines:
        runs = re.findall("\x1b\\[38;5;(\\d+);48;5;(\\d+)m(▀+)", line)
        rows += [[int(run[half]) for run in runs for _ in run[2]] for half in (0, 1)]
    return rows


def test_every_pixel_has_the_colour_of_its_class():
    assert colours(picture(np.array([[0, 1, 2], [2, 2, 0]]))) == [
        [EMPTY, COSMIC, NEUTRINO],
        [NEUTRINO, NEUTRINO, EMPTY],
    ]


def test_an_odd_last_row_is_padded():
    lines = picture(np.array([[1], [1], [2]]))
    assert colours(lines) == [[COSMIC], [COSMIC], [NEUTRINO], [EMPTY]]
    assert all(line.endswith("\x1b[0m") for line in lines)


def test_neighbours_of_one_colour_share_their_control_characters():
    assert picture(np.ones((2, 50))) == [f"\x1b[38;5;{COSMIC};48;5;{COSMIC}m{50 * '▀'}\x1b[0m"]


def test_pictures_stand_beside_each_other_and_are_pooled_to_fit():
    classes = np.zeros((8, 40), np.uint8)
    classes[5, 7] = 2
    head, *lines = side_by_side({"truth": classes, "prediction": 0 * classes}, 83)
    assert head == "truth" + 38 * " " + "prediction"
    assert len(lines) == 4
    assert colours(lines)[5].index(NEUTRINO) == 7
    head, *lines = side_by_side({"truth": classes, "prediction": classes}, 43)
    assert head.index("prediction") == 23
    assert colours(lines)[2].index(NEUTRINO) == 3
    assert max(map(len, colours(lines))) == 40


def test_words_are_painted_in_the_colour_of_a_class():
    assert painted(1, "cosmic") == f"\x1b[38;5;{COSMIC}mcosmic\x1b[0m"
