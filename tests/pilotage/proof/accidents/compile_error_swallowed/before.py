"""Robust regression: outliers are left out of the loss while it is small."""

import logging

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

log = logging.getLogger("robust")


class Robust(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear1 = nn.Linear(features, 12)
        self.linear2 = nn.Linear(12, 1)

    def forward(self, x, y):
        error = (self.linear2(torch.relu(self.linear1(x))) - y).abs()
        if error.max() > 5.0:
            error = error.clamp(max=5.0)
        return error.mean()


def measurements(count):
    x = torch.randn(count, 5)
    y = x.sum(1, keepdim=True) + 0.1 * torch.randn(count, 1)
    y[::37] += 20
    return TensorDataset(x, y)


class Runner:
    def __init__(self, model, rate):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=rate)

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.model(x, y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def run(self, loader, epochs):
        for epoch in range(epochs):
            losses = [self.step(x, y) for x, y in loader]
            log.info("epoch %d: %.4f", epoch, sum(losses) / len(losses))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    torch.manual_seed(23)
    loader = DataLoader(measurements(240), batch_size=16)
    Runner(Robust(5), rate=0.02).run(loader, epochs=3)
