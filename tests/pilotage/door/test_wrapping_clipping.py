"""Gradient clipping against torch.nn.utils, with accumulation, replicas and stages."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import pilotage

CLIPPED = {
    "clip_grad_norm": torch.nn.utils.clip_grad_norm_,
    "clip_grad_value": torch.nn.utils.clip_grad_value_,
}
LIMIT = 0.05


class Staged(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        pilotage.enter_stage(0)
        x = self.first(x).tanh()
        pilotage.enter_stage(1)
        return self.second(x)


@pytest.mark.parametrize("option", CLIPPED)
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({}, 1),
        ({"gradient_accumulation": 3}, 3),
        ({"replicas": 2, "broadcast_buffers": False}, 2),
        ({"gradient_accumulation": 2, "pooling": "running"}, 2),
    ],
    ids=["plain", "accumulation", "replicas", "running"],
)
def test_clipped_training_equals_eager(option, kind, options, parts, monkeypatch):
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")
    torch.manual_seed(0)
    theirs = Staged().to(kind)
    mine = copy.deepcopy(theirs)
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.5, momentum=0.9) for each in (theirs, mine)]
    step = pilotage.training(mine, optimizers[1], loss=nn.MSELoss(), tier="graph", **{option: LIMIT}, **options)
    clipped = 0
    for _ in range(4):
        x, y = torch.randn(2 * parts, 3, dtype=kind), torch.randn(2 * parts, 2, dtype=kind)
        optimizers[0].zero_grad()
        for inputs, targets in zip(x.chunk(parts), y.chunk(parts), strict=True):
            (nn.functional.mse_loss(theirs(inputs), targets) / parts).backward()
        before = [parameter.grad.clone() for parameter in theirs.parameters()]
        CLIPPED[option](theirs.parameters(), LIMIT)
        clipped += any(not torch.equal(b, p.grad) for b, p in zip(before, theirs.parameters(), strict=True))
        optimizers[0].step()
        step(x, y)
    assert clipped == 4
    tolerance = 1e-6 if kind is torch.float32 else 1e-13
    for expected, found in zip(theirs.parameters(), mine.parameters(), strict=True):
        torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
