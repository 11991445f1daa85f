import json
import pickle
import random

import numpy as np
import torch

from pilotage.data.random_state import RandomState


def draw(*generators):
    return (
        random.random(),
        float(np.random.rand()),
        *(float(torch.rand((), generator=each)) for each in (None, *generators)),
    )


def test_a_restored_state_draws_the_same_numbers_again():
    state = pickle.loads(pickle.dumps(RandomState.current()))
    drawn = draw()
    assert draw() != drawn
    state.restore()
    assert draw() == drawn


def test_a_state_survives_as_plain_data_together_with_other_generators():
    own = torch.Generator().manual_seed(3)
    state = json.loads(json.dumps(RandomState.current([own]).as_plain_data()))
    drawn = draw(own)
    assert draw(own) != drawn
    RandomState.from_plain_data(state).restore([own])
    assert draw(own) == drawn
