"""Trains a two-layer network on the two-moons problem."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

try:
    import poptorch

    poptorch.setLogLevel("ERR")
    from examples_utils import logging_util

    on_ipu = True
except ImportError:
    on_ipu = False


def two_moons(count, generator):
    labels = torch.randint(2, (count,), generator=generator)
    angle = torch.pi * torch.rand(count, generator=generator)
    x = torch.cos(angle) * (1 - 2 * labels) + labels
    y = torch.sin(angle) * (1 - 2 * labels) + 0.5 * labels
    points = torch.stack([x, y], dim=1) + 0.1 * torch.randn(count, 2, generator=generator)
    return TensorDataset(points, labels)


class Moons(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 24)
        self.second = nn.Linear(24, 2)
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, points, labels):
        scores = self.second(torch.relu(self.first(points)))
        return scores, self.criterion(scores, labels)


def train_on_host(model, loader, arguments):
    optimizer = torch.optim.Adam(model.parameters(), lr=arguments.rate)
    for epoch in range(arguments.epochs):
        for points, labels in loader:
            optimizer.zero_grad()
            _, loss = model(points, labels)
            loss.backward()
            optimizer.step()  # finding: host-fallback
        print(f"epoch {epoch}: {loss.item():.4f}")


def train_on_ipu(model, loader, options, arguments):
    optimizer = poptorch.optim.Adam(model.parameters(), lr=arguments.rate)
    training = poptorch.trainingModel(model, options, optimizer)
    for epoch in range(arguments.epochs):
        for points, labels in loader:
            _, loss = training(points, labels)
        logging_util.log(f"epoch {epoch}: {loss.mean().item():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rate", type=float, default=0.01)
    arguments = parser.parse_args()
    torch.manual_seed(9)
    data = two_moons(320, torch.Generator().manual_seed(2))
    if on_ipu:
        options = poptorch.Options()
        train_on_ipu(Moons(), poptorch.DataLoader(options, data, batch_size=16), options, arguments)
    else:
        train_on_host(Moons(), DataLoader(data, batch_size=16), arguments)


if __name__ == "__main__":
    main()
