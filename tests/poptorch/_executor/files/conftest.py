"""A network with dropout and a buffer, its trainer, and its losses."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch

X, Y = torch.linspace(-1, 1, 12).reshape(4, 3) ** 3, torch.zeros(4, 2)


class Network(nn.Module):
    def __init__(self, width=2):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(3, width)
        self.drop = nn.Dropout(0.5)
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x, y=None, factor=2.0):
        self.count.add_(1)
        out = self.drop(self.layer(x)) * factor
        return out if y is None else {"out": out, "loss": functional.mse_loss(out, y)}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.poptorch"


@pytest.fixture
def inputs():
    return X


@pytest.fixture
def targets():
    return Y


@pytest.fixture
def network():
    """Make a network, always the same."""
    return Network


@pytest.fixture
def trainer():
    """Wrap a network for training."""

    def wrap(module=None, seed=None, lr=0.1, kind="Adam"):
        module = module or Network()
        options = poptorch.Options() if seed is None else poptorch.Options().randomSeed(seed)
        optimizer = getattr(poptorch.optim, kind)(module.parameters(), lr=lr)
        return poptorch.trainingModel(module, options, optimizer=optimizer)

    return wrap


@pytest.fixture
def losses():
    """Make some steps and return their losses."""
    return lambda model, count=3: [model(X, Y)["loss"].item() for _ in range(count)]
