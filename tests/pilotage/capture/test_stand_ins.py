"""Parameters that a loss function has from somewhere else than the module."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pilotage
from pilotage.capture.stand_ins import StandIns
from pilotage.errors import CaptureError

INPUTS = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
TARGETS = torch.arange(12) % 3


def test_a_tensor_is_replaced_wherever_a_function_gets_it():
    own, other = torch.zeros(2), torch.ones(2)
    with StandIns({id(own): other}):
        assert torch.equal(own + 1, other + 1)
        assert torch.equal(torch.cat([own, own]), torch.ones(4))
        assert torch.equal(torch.add(input=own, other=own), 2 * other)
    assert torch.equal(own + 1, torch.ones(2))


def by_module(model):
    return lambda scores, labels: nn.functional.cross_entropy(scores, labels) + penalty(model.parameters())


def by_list(model):
    kept = list(model.parameters())
    return lambda scores, labels: nn.functional.cross_entropy(scores, labels) + penalty(kept)


def by_one_weight(model):
    weight = model[0].weight
    return lambda scores, labels: nn.functional.cross_entropy(scores, labels) + penalty([weight])


def penalty(weights):
    return 0.01 * sum(each.abs().sum() for each in weights)


@pytest.mark.parametrize("tier", ["graph", "eager"])
@pytest.mark.parametrize("criterion", [by_module, by_list, by_one_weight])
def test_a_loss_that_reads_weights_by_itself_trains_them_and_agrees(twins, assert_same_state, tier, criterion):
    mine, theirs = twins(lambda: nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)))
    optimizer = torch.optim.SGD(mine.parameters(), lr=0.1)
    step = pilotage.training(mine, optimizer, loss=criterion(mine), tier=tier, check="first")
    plain, loss = torch.optim.SGD(theirs.parameters(), lr=0.1), criterion(theirs)
    for _ in range(3):
        step(INPUTS, TARGETS)
        plain.zero_grad()
        loss(theirs(INPUTS), TARGETS).backward()
        plain.step()
    assert_same_state(mine, theirs)


@pytest.mark.parametrize("view", [lambda weight: weight.data, lambda weight: weight.detach()[0]])
def test_a_view_of_a_trained_weight_outside_of_the_module_is_refused(view):
    model = nn.Linear(4, 3)
    kept = view(model.weight)
    step = pilotage.training(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        loss=lambda scores, labels: nn.functional.cross_entropy(scores, labels) + kept.sum(),
        tier="graph",
    )
    with pytest.raises(CaptureError, match=r"shares memory with 'module.weight'.*Read it from the module"):
        step(INPUTS, TARGETS)
