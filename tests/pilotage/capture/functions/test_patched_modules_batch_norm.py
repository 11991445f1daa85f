"""Batch normalisation with a cumulative average (``momentum=None``)."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.capture.functions.patched_modules import patched_modules


class Network(nn.Module):
    def __init__(self, **options) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.norm = nn.BatchNorm1d(3, **options)

    def forward(self, x):
        return functional.mse_loss(self.norm(self.layer(x)), torch.zeros(len(x), 3))


OPTIONS = {
    "average": {"momentum": None},
    "plain": {"momentum": None, "affine": False},
    "untracked": {"momentum": None, "track_running_stats": False},
    "moving": {},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_training_equals_eager(options, twins, assert_same_state, assert_equal):
    mine, theirs = twins(lambda: Network(**options))
    step = pilotage.training(mine, torch.optim.SGD(mine.parameters(), lr=0.1))
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1)
    for _ in range(4):
        x = torch.randn(5, 4)
        optimizer.zero_grad()
        wanted = theirs(x)
        wanted.backward()
        optimizer.step()
        assert_equal(step(x), wanted.detach(), 1e-6)
    assert_same_state(mine, theirs, 1e-6)


def test_inference_uses_the_averages(twins, assert_equal):
    mine, theirs = twins(lambda: Network(momentum=None))
    mine.eval()
    theirs.eval()
    x = torch.randn(5, 4)
    assert_equal(pilotage.inference(mine)(x), theirs(x).detach())


def test_other_modules_keep_their_forward_and_all_are_restored():
    class Own(nn.BatchNorm1d):
        def forward(self, x):
            return x

    module = nn.ModuleList([nn.BatchNorm1d(3, momentum=None), nn.BatchNorm1d(3), Own(3, momentum=None), nn.ReLU()])
    with patched_modules(module):
        assert ["forward" in vars(part) for part in module] == [True, False, False, False]
    assert ["forward" in vars(part) for part in module] == [False] * 4
