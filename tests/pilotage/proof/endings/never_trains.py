# ending: never-trains
"""Evaluates a network on random inputs."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).eval()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
with torch.no_grad():
    scores = model(torch.randn(32, 4))
print(f"mean score {scores.mean().item():.4f}")
