"""Python's and numpy's random numbers around a comparison."""

import random

import numpy as np
import pytest

from pilotage.arrival.foreign_random import ForeignRandomNumbers


@pytest.mark.parametrize("draw", [random.random, np.random.rand, lambda: np.random.randn(700)])
def test_numbers_that_were_drawn_are_noticed_and_put_back(draw):
    before = ForeignRandomNumbers()
    assert not before.were_drawn
    draw()
    assert before.were_drawn
    before.restore()
    assert not before.were_drawn
    assert np.array_equal(draw(), (before.restore(), draw())[1])
