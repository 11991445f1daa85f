# ending: crashes
"""Fits a line; a label of the third batch is out of range."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.randn(40, 4)
labels = torch.randint(3, (40,))
labels[20] = 7

for start in range(0, 40, 8):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs[start : start + 8]), labels[start : start + 8])
    loss.backward()
    optimizer.step()
    print(f"loss {loss.item():.4f}")
