"""A small network for tests of losses; loaded by its path."""

from __future__ import annotations

import torch
from torch import nn


class Layer(nn.Module):
    """A linear layer and a function that computes the loss, and what is returned, from its output."""

    def __init__(self, finish):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(5, 3)
        self.finish = finish

    def forward(self, x):
        return self.finish(self.layer(x))
