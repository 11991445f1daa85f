"""The learning rate at the corners of each schedule, as versions 2.0 and 2.1 of the original have it."""

import math

import pytest

from cosmictagger.configuration.choices import RunUnit, ScheduleKind
from cosmictagger.configuration.mode import LrSchedule, Optimizer
from cosmictagger.configuration.run import Run
from cosmictagger.errors import ConfigurationError
from cosmictagger.training.schedule import Newer, WarmUp, early_end, run_steps, schedule_for

SCHEDULE = WarmUp(peak=3e-3, minibatch_size=2, events=200)
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


@pytest.mark.parametrize("accumulation", [1, 4])
def test_accumulated_batches_do_not_shorten_the_warm_up(accumulation):
    settings = Optimizer(gradient_accumulation=accumulation)
    schedule = schedule_for(settings, Run(minibatch_size=1), 5)
    rates = [schedule.rate(step) for step in (0, 1, 2, 3, 4, 5, 105, 106, 110, 125)]
    expected = [1e-4, 1.4e-4, 1.8e-4, 2.2e-4, 2.6e-4, 3e-4, 3e-4, 2.637789e-4, 1.736495e-4, 1.0367781e-4]
    assert rates == pytest.approx(expected, rel=1e-6)


RATES = {
    "flat": {0: 1e-3, 1999: 1e-3, 2000: 0},
    "standard": {0: 1e-6, 50: 5.005e-4, 100: 1e-3, 1500: 1e-3, 1600: 4.310915e-4, 1999: 1.061251e-4, 2000: 0},
    "one_cycle": {
        0: 1e-4,
        375: 5.5e-4,
        750: 1e-3,
        1125: 5.5e-4,
        1500: 1e-4,
        1600: 4.310915e-5,
        1999: 1.061251e-5,
        2000: 0,
    },
}


@pytest.mark.parametrize("name", RATES)
def test_the_schedules_of_version_21_have_its_rates(name):
    cycles = name == "one_cycle"
    settings = LrSchedule(
        name=ScheduleKind[name], decay_floor=1e-5 if cycles else 1e-4, min_learning_rate=1e-4 if cycles else 1e-3
    )
    schedule = schedule_for(Optimizer(lr_schedule=settings), Run(minibatch_size=2, run_length=20), 200)
    assert isinstance(schedule, Newer)
    assert [schedule.rate(step) for step in RATES[name]] == pytest.approx(list(RATES[name].values()), rel=1e-6)


def test_the_largest_file_sets_the_epoch_and_iterations_count_events():
    settings = Optimizer(lr_schedule=LrSchedule(name=ScheduleKind.flat))
    assert schedule_for(settings, Run(minibatch_size=2), 200, 301).end == 150 * 20
    run = Run(minibatch_size=2, run_length=7, run_units=RunUnit.iteration)
    assert schedule_for(settings, run, 200).end == 200 * 25


def test_a_decay_longer_than_the_run_is_refused():
    settings = Optimizer(lr_schedule=LrSchedule(name=ScheduleKind.standard))
    with pytest.raises(ConfigurationError, match="schedule of 5 epochs"):
        schedule_for(settings, Run(run_length=5), 200)


@pytest.mark.parametrize(
    ("step", "steps", "idle"),
    [(0, 40, None), (0, 41, "40 to 40"), (30, 15, "40 to 44"), (50, 2, "50 to 51"), (50, 0, None)],
)
def test_steps_after_the_end_of_a_schedule_are_named(step, steps, idle):
    settings = Optimizer(lr_schedule=LrSchedule(name=ScheduleKind.flat))
    said = early_end(schedule_for(settings, Run(minibatch_size=2), 5), step, steps)
    assert (said is None) is (idle is None)
    assert (
        idle is None
        or f"ends after 40 steps (20 epochs of 2), as in version 2.1: the learning rate of steps {idle} is 0" in said
    )
    assert early_end(SCHEDULE, step, 10**6) is None


def test_the_length_of_a_run_counts_epochs_or_steps():
    assert run_steps(Run(minibatch_size=2), 200) is None
    assert run_steps(Run(minibatch_size=3, run_length=2), 200) == 132
    assert run_steps(Run(run_length=7, run_units=RunUnit.iteration), 200) == 7
