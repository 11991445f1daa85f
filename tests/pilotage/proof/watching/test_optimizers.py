import pytest
import torch

from pilotage.proof.watching.optimizers import OptimizerWatch, has_gradients
from pilotage.proof.watching.settings import WatchSettings
from pilotage.proof.watching.watch import Watch


@pytest.fixture
def watched(tmp_path):
    return OptimizerWatch(Watch(WatchSettings(folder=str(tmp_path))))


def optimizer(rate=0.1):
    weight = torch.nn.Parameter(torch.ones(2))
    return torch.optim.SGD([weight], lr=rate)


def scheduled(watched, made, **settings):
    """A schedule that was made while the process is watched."""
    schedule = torch.optim.lr_scheduler.StepLR.__new__(torch.optim.lr_scheduler.StepLR)
    watched._schedule_made(torch.optim.lr_scheduler.StepLR.__init__)(schedule, made, **settings)
    return schedule


def test_steps_without_gradients_are_counted_apart(watched):
    made = optimizer()
    assert not has_gradients(made)
    watched.stepped(made, works=False)
    watched.stepped(made, works=True)
    (found,) = watched._summary()["optimizers"]
    assert (found["steps"], found["updates"], found["kind"]) == (2, 1, "SGD")


@pytest.mark.filterwarnings("ignore:Detected call of")
def test_a_rate_that_is_not_applied_is_seen(watched):
    made = optimizer()
    schedule = scheduled(watched, made, step_size=1)
    watched.trained(watched.known(made), [0.1])
    schedule.step()
    watched.trained(watched.known(made), [0.1])
    (found,) = watched._summary()["schedules"]
    assert (found["changed"], found["ignored"], found["example"]) == (1, 1, [[pytest.approx(0.01)], [0.1]])


@pytest.mark.filterwarnings("ignore:Detected call of")
def test_a_rate_that_is_applied_is_fine(watched):
    made = optimizer()
    schedule = scheduled(watched, made, step_size=1)
    for _ in range(3):
        watched.stepped(made, works=True)
        schedule.step()
    (found,) = watched._summary()["schedules"]
    assert found["ignored"] == 0
    assert found["changed"] == 2


def test_a_schedule_counts_no_step_for_its_own_construction(watched):
    scheduled(watched, optimizer(), step_size=1)
    assert watched._summary()["schedules"][0]["steps"] == 0


class Halving(torch.optim.lr_scheduler.LRScheduler):
    """Sets rates without a word to its base class, as published schedules do."""

    def step(self, epoch=None):
        self.last_epoch += 1
        for group, rate in zip(self.optimizer.param_groups, self.base_lrs, strict=True):
            group["lr"] = rate * 0.5**self.last_epoch


def halving(watched, made):
    schedule = Halving.__new__(Halving)
    watched._schedule_made(torch.optim.lr_scheduler.LRScheduler.__init__)(schedule, made)
    return schedule


def test_a_schedule_that_keeps_no_last_rates_is_asked_through_its_optimizer(watched):
    made = optimizer()
    schedule = halving(watched, made)
    assert not hasattr(schedule, "_last_lr")
    watched.stepped(made, works=True)
    schedule.step()
    watched.stepped(made, works=True)
    watched.trained(watched.known(made), [0.1])
    (found,) = watched._summary()["schedules"]
    assert (found["changed"], found["ignored"], found["example"]) == (2, 1, [[pytest.approx(0.05)], [0.1]])


def test_the_steps_of_a_schedule_that_overrides_them_are_counted(watched):
    schedule = halving(watched, optimizer())
    assert watched._summary()["schedules"][0]["steps"] == 0
    schedule.step()
    assert watched._summary()["schedules"][0]["steps"] == 1
