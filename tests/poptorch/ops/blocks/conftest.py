"""Models with layers in blocks, and the blocks recorded by compilation."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from poptorch.ops.blocks import Block
from poptorch.options import Options, ShardedExecution


class Scopes(nn.Module):
    def __init__(self, *blocks, after=lambda x: x, before=lambda x: x):
        super().__init__()
        self.blocks = blocks
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in blocks)
        self.before = before
        self.after = after

    def forward(self, x):
        x = self.before(x)
        for layer, (block_id, ipu) in zip(self.layers, self.blocks, strict=True):
            with Block(block_id, ipu_id=ipu):
                x = layer(x)
        return self.after(x)


class Loss(nn.Module):
    def __init__(self, model, ipu):
        super().__init__()
        self.model = model
        self.ipu = ipu

    def forward(self, x):
        x = self.model(x)
        with Block("loss", ipu_id=self.ipu):
            return nn.functional.mse_loss(x, torch.zeros_like(x))


@pytest.fixture
def scopes():
    """Make a model that runs a layer in each of the given blocks."""
    return Scopes


@pytest.fixture
def with_loss():
    """Combine a model with a loss, in one more block on the same IPU."""
    return Loss


@pytest.fixture
def rows():
    return torch.arange(12.0).reshape(4, 3)


@pytest.fixture
def sharded():
    return Options().setExecutionStrategy(ShardedExecution())


@pytest.fixture
def visited():
    """The blocks that a compiled model has recorded."""
    return lambda model: [
        (visit.block_id, visit.placement.stage, visit.placement.ipu) for visit in model.capture.visits
    ]
