# ending: reads-input
"""Asks for the number of epochs before it trains."""

import torch
from torch import nn

torch.manual_seed(0)
epochs = int(input("How many epochs? "))
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
inputs = torch.randn(32, 4)
for _ in range(epochs):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), inputs.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
