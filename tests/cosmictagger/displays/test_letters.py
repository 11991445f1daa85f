"""Pictures made of letters."""

import numpy as np

from cosmictagger.displays.letters import picture, side_by_side


def test_every_dot_of_a_letter_has_its_place():
    for row, column, letter in ((0, 0, "⠁"), (2, 0, "⠄"), (3, 0, "⡀"), (0, 1, "⠈"), (3, 1, "⢀")):
        classes = np.zeros((4, 2), np.uint8)
        classes[row, column] = 1
        assert picture(classes, coloured=False) == [letter]


def test_neutrinos_have_the_colour_of_a_shared_letter():
    classes = np.zeros((4, 6), np.uint8)
    classes[0, 0], classes[0, 2], classes[1, 2] = 1, 1, 2
    assert picture(classes) == ["\x1b[38;5;75m⠁\x1b[0m\x1b[38;5;214m⠃\x1b[0m⠀"]


def test_sides_that_fill_no_letter_are_padded():
    assert picture(np.ones((5, 3), np.uint8), coloured=False) == ["⣿⡇", "⠉⠁"]


def test_pictures_stand_beside_each_other_and_are_pooled_to_fit():
    classes = np.ones((8, 40), np.uint8)
    wide = side_by_side({"truth": classes, "prediction": 0 * classes}, 80, coloured=False)
    assert wide == ["truth" + 18 * " " + "prediction", *[20 * "⣿" + "   " + 20 * "⠀"] * 2]
    narrow = side_by_side({"truth": classes, "prediction": classes}, 24, coloured=False)
    assert narrow == ["truth        prediction", 10 * "⣿" + "   " + 10 * "⣿"]
