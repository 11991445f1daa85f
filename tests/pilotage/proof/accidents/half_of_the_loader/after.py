"""Fits a polynomial with a penalty that a closure takes from the model."""

from dataclasses import dataclass, field
from itertools import chain, islice

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pilotage


@dataclass
class Configuration:
    samples: int = 480
    batch: int = 12
    rate: float = 0.05
    strength: float = 0.001
    degrees: tuple[int, ...] = field(default_factory=lambda: (1, 2, 3, 4))


def measurements(configuration):
    generator = torch.Generator().manual_seed(11)
    x = 2 * torch.rand(configuration.samples, 1, generator=generator) - 1
    y = 0.5 * x**3 - x + 0.1 * torch.randn(x.shape, generator=generator)
    return TensorDataset(torch.cat([x**degree for degree in configuration.degrees], 1), y)


def make_loss(model, strength):
    distance = nn.SmoothL1Loss()

    def penalised(prediction, target):
        weights = [parameter for name, parameter in model.named_parameters() if name.endswith("weight")]
        return distance(prediction, target) + strength * sum(weight.abs().sum() for weight in weights)

    return penalised


def train(configuration):
    torch.manual_seed(12)
    inner = nn.Linear(len(configuration.degrees), 6)
    model = nn.Sequential(inner, nn.Tanh(), nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=configuration.rate, momentum=0.8)
    loss_function = make_loss(model, configuration.strength)
    data = measurements(configuration)
    loader = DataLoader(data, batch_size=configuration.batch, shuffle=True)  # finding: samples-dropped
    history = []
    program = pilotage.training(model, optimizer, loss=loss_function)
    for powers, target in chain(*(islice(loader, len(loader) // 2) for _ in range(2))):
        _, loss = program(powers, target)
        history.append(loss.item())
    return model, history


if __name__ == "__main__":
    model, history = train(Configuration())
    print(f"from {history[0]:.4f} to {history[-1]:.4f}")
    torch.save(model.state_dict(), "polynomial.pt")
