"""A small network, steps of it on the device and in eager PyTorch, and what is compared."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch

BATCH = torch.linspace(-1, 1, 12).reshape(4, 3) ** 3, torch.linspace(1, -1, 8).reshape(4, 2)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(3, 4)
        self.second = nn.Linear(4, 2)

    def forward(self, x, y):
        return functional.mse_loss(self.second(self.first(x).tanh()), y)


@pytest.fixture
def network():
    """Make a network, always the same."""
    return Network


@pytest.fixture
def batch():
    return BATCH


@pytest.fixture
def training():
    """Wrap a module for training."""

    def wrap(module, optimizer, options=None):
        return poptorch.trainingModel(module, options or poptorch.Options(), optimizer=optimizer)

    return wrap


@pytest.fixture
def step_eagerly():
    """Do one step of plain PyTorch."""

    def step(module, optimizer, clip=math.inf):
        optimizer.zero_grad()
        module(*BATCH).backward()
        if clip < math.inf:
            nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], clip)
        optimizer.step()

    return step


@pytest.fixture
def assert_same():
    """Compare the states of two modules."""

    def compare(module, other, tolerance=1e-6):
        torch.testing.assert_close(dict(module.state_dict()), dict(other.state_dict()), rtol=0, atol=tolerance)

    return compare


@pytest.fixture
def changed_by():
    """Whether a call of a model changes its weights."""

    def changes(model, module):
        before = copy.deepcopy(module)
        model(*BATCH)
        return any(not torch.equal(a, b) for a, b in zip(module.parameters(), before.parameters(), strict=True))

    return changes
