"""Parameters that are frozen, thawed or added in the middle of training."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import OptionError

OPTIMIZERS = {
    "adam": lambda p: torch.optim.Adam(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "radam": lambda p: torch.optim.RAdam(p, lr=0.05),
}


@pytest.fixture(autouse=True)
def on_the_processor(monkeypatch):
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")


def pair(optimizer):
    torch.manual_seed(0)
    theirs = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    mine = copy.deepcopy(theirs)
    eager, given = OPTIMIZERS[optimizer](theirs.parameters()), OPTIMIZERS[optimizer](mine.parameters())
    return theirs, mine, eager, given


def train(step, theirs, eager, count=2):
    for _ in range(count):
        x, y = torch.randn(5, 3), torch.randn(5, 2)
        eager.zero_grad()
        nn.functional.mse_loss(theirs(x), y).backward()
        eager.step()
        step(x, y)


def assert_same(mine, theirs):
    for one, other in zip(mine.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_freezing_in_the_middle_trains_on_as_in_eager(optimizer):
    theirs, mine, eager, given = pair(optimizer)
    step = pilotage.training(mine, given, loss=nn.MSELoss(), tier="graph")
    train(step, theirs, eager)
    for model in (theirs, mine):
        model[0].requires_grad_(False)
    frozen = mine[0].weight.detach().clone()
    train(step, theirs, eager, count=3)
    assert torch.equal(mine[0].weight, frozen)
    assert_same(mine, theirs)


@pytest.mark.parametrize("optimizer", ["momentum", "radam"])
def test_thawing_what_was_never_trained_trains_on_as_in_eager(optimizer):
    theirs, mine, eager, given = pair(optimizer)
    for model in (theirs, mine):
        model[0].requires_grad_(False)
    step = pilotage.training(mine, given, loss=nn.MSELoss(), tier="graph")
    train(step, theirs, eager)
    for model in (theirs, mine):
        model[0].requires_grad_(True)
    train(step, theirs, eager, count=3)
    assert_same(mine, theirs)


def test_thawing_that_would_differ_from_eager_is_refused_until_it_is_undone():
    _, mine, _, given = pair("adam")
    mine[0].requires_grad_(False)
    step = pilotage.training(mine, given, loss=nn.MSELoss(), tier="graph")
    x, y = torch.randn(5, 3), torch.randn(5, 2)
    step(x, y)
    mine[0].requires_grad_(True)
    for _ in range(2):
        with pytest.raises(OptionError, match=r"0\.weight was added to what the Adam optimizer trains, or thawed"):
            step(x, y)
    mine[0].requires_grad_(False)
    step(x, y)


def test_a_setting_that_is_compiled_in_is_followed():
    theirs, mine, eager, given = pair("adam")
    step = pilotage.training(mine, given, loss=nn.MSELoss(), tier="graph")
    train(step, theirs, eager)
    for optimizer in (eager, given):
        optimizer.param_groups[0]["weight_decay"] = 0.5
    train(step, theirs, eager, count=3)
    assert_same(mine, theirs)


def test_a_setting_that_needs_other_state_is_refused():
    _, mine, _, given = pair("adam")
    step = pilotage.training(mine, given, loss=nn.MSELoss(), tier="graph")
    step(torch.randn(5, 3), torch.randn(5, 2))
    given.param_groups[0]["amsgrad"] = True
    with pytest.raises(OptionError, match="keeps max_exp_avg_sq"):
        step(torch.randn(5, 3), torch.randn(5, 2))
