"""Fits a surface over a unit square."""

import math

import torch
from torch import nn


def surface(points):
    """The height above points of the square."""
    return torch.sin(math.pi * points[:, :1]) * torch.cos(math.pi * points[:, 1:])


def batches(count, size, seed):
    """Points in the square and the height above them."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        points = torch.rand(size, 2, generator=generator)
        yield points, surface(points)


class Surface(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.head = nn.Linear(width, 1)

    def forward(self, points):
        return self.head(self.body(points))


def prepare(model, criterion, rate):
    """Everything that the loop needs."""
    optimizer = torch.optim.RMSprop(model.parameters(), lr=rate)
    return model, criterion, optimizer


def fit(model, criterion, optimizer, source, report=10):
    for number, (points, height) in enumerate(source, 1):
        optimizer.zero_grad()
        loss = criterion(model(points), height)
        loss.backward()
        optimizer.step()
        if number % report == 0:
            print(f"{number:4d} {loss.item():.5f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    fit(*prepare(Surface(), nn.MSELoss(), 2e-3), batches(40, 32, seed=1))
