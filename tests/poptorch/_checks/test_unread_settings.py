"""Optimizers whose settings a schedule changes, although no program reads them."""

from __future__ import annotations

import timeit

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, StepLR

import poptorch
from poptorch._checks.unread_settings import UnreadSettings

X, TARGET = torch.ones(4, 3), torch.zeros(4, 2)


def sgd(model, lr=0.1):
    return poptorch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)


def test_a_schedule_without_set_optimizer_is_reported_once(regression, warnings_of_poptorch, train_with):
    optimizer = sgd(regression)
    train, rates = train_with(regression, optimizer), StepLR(optimizer, 1, gamma=0.5)
    for _ in range(4):
        train(X, TARGET)
        rates.step()
    (warning,) = warnings_of_poptorch()
    assert warning.startswith("StepLR has changed the SGD optimizer (learning rate 0.1 -> 0.05), which has no effect")
    assert "Call setOptimizer(optimizer)" in warning


def test_a_schedule_of_an_optimizer_that_the_model_was_not_given_is_reported_once(
    regression, warnings_of_poptorch, train_with
):
    adam = torch.optim.Adam(regression.parameters(), lr=0.01)
    rates = LambdaLR(adam, lambda epoch: 0.5**epoch)
    train = train_with(regression, sgd(regression))
    for _ in range(3):
        train(X, TARGET)
        # torch warns if an optimizer with a schedule was never stepped; here the script has silenced that.
        adam._opt_called = True
        rates.step()
    (warning,) = warnings_of_poptorch()
    assert warning.startswith(
        "LambdaLR has changed the Adam optimizer (learning rate 0.01 -> 0.005), which has no effect"
    )
    assert "with another optimizer, the SGD that it was given" in warning


def test_a_rate_changed_by_hand_is_reported(regression, warnings_of_poptorch, train_with):
    optimizer = torch.optim.SGD(regression.parameters(), lr=0.1)
    train = train_with(regression, optimizer)
    train(X, TARGET)
    optimizer.param_groups[0]["lr"] = 0.3
    train(X, TARGET)
    (warning,) = warnings_of_poptorch()
    assert warning.startswith("The script has changed the SGD optimizer (learning rate 0.1 -> 0.3)")


@pytest.mark.parametrize("when", ["before a call", "after a call"])
def test_the_documented_pattern_gives_no_warning(regression, warnings_of_poptorch, when, train_with):
    optimizer = sgd(regression)
    rates = LambdaLR(optimizer, lambda epoch: 0.5**epoch)
    train = train_with(regression, optimizer)
    for _ in range(4):
        if when == "before a call":
            train.setOptimizer(optimizer)
        train(X, TARGET)
        rates.step()
        if when == "after a call":
            train.setOptimizer(optimizer)
    assert not warnings_of_poptorch()


def test_rates_passed_in_a_new_optimizer_give_no_warning(regression, warnings_of_poptorch, train_with):
    source = torch.optim.SGD(regression.parameters(), lr=0.1)
    rates = StepLR(source, 1, gamma=0.5)
    train = train_with(regression, sgd(regression))
    for _ in range(4):
        train(X, TARGET)
        source._opt_called = True
        rates.step()
        train.setOptimizer(sgd(regression, lr=rates.get_last_lr()[0]))
    assert not warnings_of_poptorch()


def test_a_schedule_of_training_on_the_host_gives_no_warning(regression, warnings_of_poptorch, train_with):
    host = torch.optim.Adam(regression.parameters(), lr=0.01)
    rates = StepLR(host, 1, gamma=0.5)
    train = train_with(regression, sgd(regression))
    for _ in range(3):
        train(X, TARGET)
        train.detachFromDevice()
        regression(X, TARGET)[1].backward()
        host.step()
        host.zero_grad()
        rates.step()
    assert not warnings_of_poptorch()


def test_two_models_with_schedules_give_no_warning(regression, warnings_of_poptorch, train_with):
    # As in a GAN: the first model holds the parameters of the second one too.
    class Through(nn.Module):
        def __init__(self, generator, judge):
            super().__init__()
            self.generator, self.judge = generator, judge

        def forward(self, x, target):
            return self.judge(self.generator(x), target)

    generator, judge = nn.Linear(3, 3), regression
    optimizers = torch.optim.SGD(generator.parameters(), lr=0.1), torch.optim.SGD(judge.parameters(), lr=0.1)
    models = train_with(Through(generator, judge), optimizers[0]), train_with(judge, optimizers[1])
    rates = [StepLR(optimizer, 1, gamma=0.5) for optimizer in optimizers]
    for _ in range(3):
        for model in models:
            model(X, TARGET)
        for rate in rates:
            rate.step()
        for model, optimizer in zip(models, optimizers, strict=True):
            model.setOptimizer(optimizer)
    assert not warnings_of_poptorch()


def test_settings_from_a_loaded_state_give_no_warning(regression, warnings_of_poptorch, train_with):
    optimizer = sgd(regression)
    train = train_with(regression, optimizer)
    train(X, TARGET)
    saved = optimizer.state_dict()
    saved["param_groups"][0]["lr"] = 0.02
    optimizer.load_state_dict(saved)
    train(X, TARGET)
    train(X, TARGET)
    assert not warnings_of_poptorch()


def test_checking_at_every_call_is_cheap(regression):
    unread = UnreadSettings(sgd(regression))
    assert min(timeit.repeat(lambda: unread.check(0), number=1000, repeat=20)) / 1000 < 1e-5


@pytest.mark.parametrize("way", ["pre-hook", "post-hook", "its own step()"])
def test_code_around_the_steps_of_an_optimizer_is_reported_once(regression, warnings_of_poptorch, train_with, way):
    optimizer = sgd(regression)
    train = train_with(regression, optimizer)
    train(X, TARGET)
    if way == "pre-hook":
        optimizer.register_step_pre_hook(print)
    elif way == "post-hook":
        optimizer.register_step_post_hook(print)
    else:
        optimizer.step = print
    train(X, TARGET)
    train(X, TARGET)
    (warning,) = warnings_of_poptorch()
    assert warning.startswith("The SGD optimizer has")
    assert f"{way}" in warning
    assert "print, which has no effect" in warning
