"""The learning rate at the corners of its schedule."""

import math

import pytest

from cosmictagger.training.schedule import Schedule

SCHEDULE = Schedule(peak=3e-3, minibatch_size=2, events=200)
EPOCH = 100


@pytest.mark.parametrize(
    ("step", "rate"),
    [
        (0, 1e-4),
        (EPOCH // 2, (1e-4 + 3e-3) / 2),
        (EPOCH, 3e-3),
        (21 * EPOCH - 1, 3e-3),
        (21 * EPOCH, 3e-3),
        (22 * EPOCH, 2.9e-3 * math.exp(-0.999) + 1e-4),
        (60 * EPOCH, 1e-4),
    ],
)
def test_the_learning_rate_warms_up_stays_and_decays(step, rate):
    assert SCHEDULE.rate(step) == pytest.approx(rate)
