"""Learning-rate schedules at `pilotage.training`: the optimizer's parameter groups are read at every call."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.optim import lr_scheduler

import pilotage

CALLS = 10


class Regression(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.second = nn.Linear(8, 2)

    def forward(self, x, target):
        output = self.second(torch.relu(self.first(x)))
        return output, nn.functional.mse_loss(output, target)


class InStages(Regression):
    def forward(self, x, target):
        pilotage.enter_stage(0)
        hidden = torch.relu(self.first(x))
        pilotage.enter_stage(1)
        output = self.second(hidden)
        return output, nn.functional.mse_loss(output, target)


OPTIMIZERS = {
    "sgd": lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9),
    "sgd without momentum": lambda m: torch.optim.SGD(m.parameters(), lr=0.1),
    "adam": lambda m: torch.optim.Adam(m.parameters(), lr=0.01),
    "adamw with a rate for each layer": lambda m: torch.optim.AdamW(
        [{"params": m.first.parameters(), "lr": 0.02}, {"params": m.second.parameters()}], lr=0.01
    ),
    "rmsprop": lambda m: torch.optim.RMSprop(m.parameters(), lr=0.01),
    "sgd with its rate in a tensor": lambda m: torch.optim.SGD(m.parameters(), lr=torch.tensor(0.1), foreach=False),
}
SCHEDULES = {
    "one cycle": lambda o: lr_scheduler.OneCycleLR(o, max_lr=0.2, total_steps=CALLS + 2, cycle_momentum=False),
    "steps": lambda o: lr_scheduler.StepLR(o, 3, gamma=0.3),
    "lambda": lambda o: lr_scheduler.LambdaLR(o, lambda n: min(1.0, (n + 1) / 4)),
    "cosine after a warm-up": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.LinearLR(o, 0.1, total_iters=3), lr_scheduler.CosineAnnealingLR(o, 5)], [3]
    ),
    "chained": lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.ConstantLR(o, 0.5, total_iters=4), lr_scheduler.ExponentialLR(o, 0.9)]
    ),
}


def batches(count, size=4):
    generator = torch.Generator().manual_seed(1)
    return [
        (torch.randn(size, 6, generator=generator), torch.randn(size, 2, generator=generator)) for _ in range(count)
    ]


def follow(mine, theirs, make, schedule, eager, *, micro_batches=1, **options):
    """The losses of both, with a schedule each, step by step."""
    optimizer, other = make(mine), make(theirs)
    rates, other_rates = schedule(optimizer), schedule(other)
    shape = {
        name: options[name] for name in ("device_iterations", "gradient_accumulation", "replicas") if name in options
    }
    step, reference = pilotage.training(mine, optimizer, **options), eager(theirs, other, **shape)
    losses = []
    for batch in batches(CALLS, 4 * micro_batches):
        losses.append((step(*batch)[1], reference(*batch)[1]))
        rates.step()
        other_rates.step()
    assert step.record.compilations == 1
    return losses


@settings(max_examples=8, deadline=None)
@given(optimizer=st.sampled_from(sorted(OPTIMIZERS)), schedule=st.sampled_from(sorted(SCHEDULES)))
def test_a_schedule_is_followed_without_other_calls(eager, twins, assert_equal, assert_same_state, optimizer, schedule):
    mine, theirs = twins(Regression)
    losses = follow(mine, theirs, OPTIMIZERS[optimizer], SCHEDULES[schedule], eager, tier="graph")
    assert_equal([one for one, _ in losses], [other for _, other in losses])
    assert_same_state(mine, theirs)


@pytest.mark.parametrize("optimizer", ["sgd", "sgd without momentum", "adam", "rmsprop"])
@pytest.mark.parametrize(
    "schedule",
    [
        lambda o: lr_scheduler.OneCycleLR(o, max_lr=0.05, total_steps=CALLS + 2),
        lambda o: lr_scheduler.CyclicLR(o, 0.01, 0.05, step_size_up=3, base_momentum=0.7),
    ],
    ids=["one cycle", "cyclic"],
)
def test_a_schedule_may_cycle_the_momentum_too(eager, twins, assert_same_state, optimizer, schedule):
    mine, theirs = twins(Regression)
    follow(mine, theirs, OPTIMIZERS[optimizer], schedule, eager, tier="graph")
    # A beta that may vary is rounded once more than one that is compiled in.
    assert_same_state(mine, theirs, tolerance=1e-6)


@pytest.mark.parametrize(
    ("build", "shape"),
    [
        (Regression, {"gradient_accumulation": 2, "device_iterations": 2}),
        (Regression, {"replicas": 2}),
        (InStages, {"gradient_accumulation": 4}),
    ],
    ids=["accumulation", "replicas", "stages"],
)
def test_a_schedule_is_followed_in_every_batching(eager, twins, assert_same_state, build, shape):
    mine, theirs = twins(build)
    count = torch.tensor(list(shape.values())).prod().item()
    follow(mine, theirs, OPTIMIZERS["sgd"], SCHEDULES["steps"], eager, micro_batches=count, tier="graph", **shape)
    assert_same_state(mine, theirs, tolerance=1e-6)


@pytest.mark.long
def test_compiled_code_follows_every_schedule(eager, twins, assert_same_state, tmp_path):
    for schedule in ("one cycle", "steps", "lambda"):
        mine, theirs = twins(Regression)
        options = {"tier": "compiled", "cache_directory": tmp_path}
        follow(mine, theirs, OPTIMIZERS["adam"], SCHEDULES[schedule], eager, **options)
        assert_same_state(mine, theirs, tolerance=1e-6)


def test_a_rate_changed_before_the_first_call_is_used(eager, twins, assert_same_state):
    mine, theirs = twins(Regression)
    optimizer, other = OPTIMIZERS["sgd"](mine), OPTIMIZERS["sgd"](theirs)
    step = pilotage.training(mine, optimizer, tier="graph")
    optimizer.param_groups[0]["lr"] = other.param_groups[0]["lr"] = 0.37
    step(*batches(1)[0])
    eager(theirs, other)(*batches(1)[0])
    assert_same_state(mine, theirs)


def test_a_loaded_optimizer_state_sets_the_rate(eager, twins, assert_same_state):
    mine, theirs = twins(Regression)
    optimizer, other = OPTIMIZERS["sgd without momentum"](mine), OPTIMIZERS["sgd without momentum"](theirs)
    step, reference = pilotage.training(mine, optimizer, tier="graph"), eager(theirs, other)
    saved = optimizer.state_dict()
    for number, batch in enumerate(batches(4)):
        for each in (optimizer, other):
            if number == 2:
                each.load_state_dict(saved)
            each.param_groups[0]["lr"] *= 0.5
        step(*batch)
        reference(*batch)
    assert_same_state(mine, theirs)


def test_a_changed_constant_is_followed(eager, twins, assert_same_state):
    mine, theirs = twins(Regression)
    optimizer, other = OPTIMIZERS["adam"](mine), OPTIMIZERS["adam"](theirs)
    step, reference = pilotage.training(mine, optimizer, tier="graph"), eager(theirs, other)
    for number, batch in enumerate(batches(4)):
        for each in (optimizer, other):
            each.param_groups[0]["weight_decay"] = 0.125 if number >= 2 else 0.0
        step(*batch)
        reference(*batch)
    assert step.record.compilations == 2
    assert_same_state(mine, theirs)


def test_a_group_that_is_added_after_the_first_call_is_trained(eager, twins, assert_same_state):
    mine, theirs = twins(Regression)
    optimizer, other = (torch.optim.SGD(module.first.parameters(), lr=0.1) for module in (mine, theirs))
    step, reference = pilotage.training(mine, optimizer, tier="graph"), eager(theirs, other)
    for number, batch in enumerate(batches(3)):
        if number == 1:
            optimizer.add_param_group({"params": mine.second.parameters()})
            other.add_param_group({"params": theirs.second.parameters()})
        step(*batch)
        reference(*batch)
    assert_same_state(mine, theirs)


def test_a_new_optimizer_is_used_once_it_is_set(eager, twins, assert_same_state):
    mine, theirs = twins(Regression)
    old, optimizer, other = (OPTIMIZERS["sgd"](module) for module in (mine, mine, theirs))
    step, reference = pilotage.training(mine, old, tier="graph"), eager(theirs, other)
    step.set_optimizer(optimizer)
    for batch in batches(3):
        old.param_groups[0]["lr"] = 17.0
        step(*batch)
        reference(*batch)
        for each in (optimizer, other):
            each.param_groups[0]["lr"] *= 0.3
    assert_same_state(mine, theirs)
