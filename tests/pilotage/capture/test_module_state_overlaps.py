"""Weights that share memory."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.errors import CaptureError

BATCH = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return functional.mse_loss(self.second(self.first(x)), torch.zeros_like(x))


def train(module, **options):
    optimizer = torch.optim.SGD([p for p in module.parameters() if p.requires_grad], lr=0.1)
    return pilotage.training(module, optimizer, **options)(BATCH)


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_weights_tied_by_data_are_refused(tier):
    module = Pair()
    module.second.weight.data = module.first.weight.data
    with pytest.raises(
        CaptureError, match=r"'first.weight' and 'second.weight'.*model.second.weight = model.first.weight"
    ):
        train(module, tier=tier)


def test_a_buffer_in_the_memory_of_a_weight_is_refused():
    module = Pair()
    module.register_buffer("row", module.first.weight.data[1])
    with pytest.raises(CaptureError, match=r"'first.weight' and 'row'"):
        train(module)


def test_parameters_that_are_tied_train(twins, assert_same_state):
    def tied():
        module = Pair()
        module.second.weight = module.first.weight
        return module

    mine, theirs = twins(tied)
    train(mine)
    theirs(BATCH).backward()
    torch.optim.SGD(theirs.parameters(), lr=0.1).step()
    assert_same_state(mine, theirs)


def test_parts_of_one_flat_buffer_train(twins, assert_same_state):
    def flat():
        module, memory = Pair(), torch.zeros(32)
        for place, weight in enumerate((module.first.weight, module.second.weight)):
            part = memory[16 * place : 16 * place + 16].view(4, 4)
            weight.data = part.copy_(weight.data)
        return module

    mine, theirs = twins(flat)
    train(mine)
    theirs(BATCH).backward()
    torch.optim.SGD(theirs.parameters(), lr=0.1).step()
    assert_same_state(mine, theirs)


def test_weights_that_are_not_trained_may_share_their_memory():
    module = Pair()
    module.second.weight.data = module.first.weight.data
    pilotage.inference(module)(BATCH)
    module.first.weight.requires_grad_(False)
    module.second.weight.requires_grad_(False)
    train(module)
