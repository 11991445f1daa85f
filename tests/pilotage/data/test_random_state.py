import pickle
import random

import numpy as np
import torch

from pilotage.data.random_state import RandomState


def draw():
    return random.random(), float(np.random.rand()), float(torch.rand(()))


def test_a_restored_state_draws_the_same_numbers_again():
    state = pickle.loads(pickle.dumps(RandomState.of_this_process()))
    drawn = draw()
    assert draw() != drawn
    state.restore()
    assert draw() == drawn
