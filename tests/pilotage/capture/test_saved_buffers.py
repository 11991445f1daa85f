"""Buffers that forward writes to although backward needs their old values."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage

BATCH = torch.randn(2, 4, generator=torch.Generator().manual_seed(0))


class Remembering(nn.Module):
    """A recurrent layer that keeps its state between calls; with a copy, eager PyTorch can train it too."""

    def __init__(self, *, copies: bool) -> None:
        super().__init__()
        self.layer, self.recurrent, self.copies = nn.Linear(4, 4), nn.Linear(4, 4), copies
        self.register_buffer("hidden", torch.zeros(2, 4))

    def forward(self, x):
        state = self.hidden.clone() if self.copies else self.hidden
        outputs = torch.tanh(self.layer(x) + self.recurrent(state))
        self.hidden.copy_(outputs.detach())
        return functional.mse_loss(outputs, torch.ones_like(outputs))


def training(module, **options):
    return pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.5), **options)


def test_overwritten_state_trains_like_a_copy(assert_equal, assert_same_state):
    torch.manual_seed(0)
    mine, theirs = Remembering(copies=False), Remembering(copies=True)
    theirs.load_state_dict(mine.state_dict())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        Remembering(copies=False)(BATCH).backward()
    step = training(mine, tier="graph")
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.5)
    for _ in range(3):
        loss = theirs(BATCH)
        assert_equal(step(BATCH), loss.detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert_same_state(mine, theirs)


def test_other_tensors_that_are_overwritten_are_refused_as_in_eager_pytorch():
    class Overwriting(Remembering):
        def forward(self, x):
            middle = torch.exp(x * self.layer.bias)
            middle.mul_(2)
            self.hidden.add_(1)
            return functional.mse_loss(middle, x)

    module = Overwriting(copies=False)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        module(BATCH).backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        training(module, tier="graph")(BATCH)
