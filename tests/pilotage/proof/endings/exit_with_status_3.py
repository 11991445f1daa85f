# ending: exits
"""Stops with its own status when the loss does not fall fast enough."""

import sys

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
first = None
for step in range(10):
    inputs = torch.randn(8, 4)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), inputs.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    first = first or loss.item()
    if step == 5 and loss.item() > 0.01 * first:
        print("the loss does not fall", file=sys.stderr)
        sys.exit(3)
