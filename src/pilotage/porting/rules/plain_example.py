"""The script that most examples of rules begin with."""

from __future__ import annotations

__all__ = ["PLAIN_LOOP", "PLAIN_STEP"]

PLAIN_STEP = """\
import torch
import torch.nn.functional as F
from torch import nn

model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
"""What comes before the loop."""

PLAIN_LOOP = """\
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""
