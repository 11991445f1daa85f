"""Predicts the lifetime of a battery from its first cycles."""

import logging

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import poptorch

try:
    from examples_utils import averages
except ImportError:
    averages = None

logging.basicConfig(level=logging.INFO, format="%(message)s")


def batteries(count):
    generator = torch.Generator().manual_seed(390)
    fade = torch.rand(count, 1, generator=generator)
    capacity = 1 - fade * torch.linspace(0, 1, 12) ** 2 + 0.02 * torch.randn(count, 12, generator=generator)
    return TensorDataset(capacity, 1 - fade)


class Battery(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1))
        self.loss = nn.L1Loss()

    def forward(self, capacity, lifetime):
        prediction = self.layers(capacity)
        return prediction, self.loss(prediction, lifetime)


def eager_step(model, optimizer):
    def step(capacity, lifetime):
        optimizer.zero_grad()
        outputs = model(capacity, lifetime)
        outputs[1].backward()
        optimizer.step()
        return outputs

    return step


def compiled_step(model, optimizer):
    """One call of the program for each batch; on trouble, the host takes over."""
    try:
        return poptorch.trainingModel(model, poptorch.Options(), optimizer)
    except poptorch.Error as error:
        logging.warning("no program: %s", error)
        return eager_step(model, optimizer)


def run(step, loader, epochs):
    for epoch in range(epochs):
        for capacity, lifetime in loader:
            _, loss = step(capacity, lifetime)
        loss = loss if averages is None else averages.over_instances(loss)
        logging.info("epoch %d: %.4f", epoch, loss.item())


if __name__ == "__main__":
    torch.manual_seed(391)
    model = Battery()
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    run(compiled_step(model, optimizer), DataLoader(batteries(256), batch_size=16), epochs=3)
