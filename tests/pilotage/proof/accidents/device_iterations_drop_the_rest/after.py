"""Classifies pulse shapes with a one-dimensional convolution."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import Dataset

import poptorch


@dataclass
class Settings:
    samples: int = 300
    batch_size: int = 8
    epochs: int = 1
    learning_rate: float = 0.02
    momentum: float = 0.9
    device_iterations: int = 16


class Pulses(Dataset):
    """Half of the pulses decay fast, half of them slowly."""

    def __init__(self, count, seed=0):
        generator = torch.Generator().manual_seed(seed)
        time = torch.arange(32.0)
        self.labels = torch.arange(count) % 2
        decay = torch.where(self.labels == 0, 3.0, 8.0).unsqueeze(1)
        self.pulses = torch.exp(-time / decay) + 0.1 * torch.randn(count, 32, generator=generator)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.pulses[index].unsqueeze(0), self.labels[index]


class PulseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 6, 5, stride=2)
        self.linear = nn.Linear(6 * 14, 2)
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, pulses, labels):
        scores = self.linear(torch.relu(self.conv(pulses)).flatten(1))
        return scores, self.criterion(scores, labels)


def run(settings):
    torch.manual_seed(21)
    model = PulseNet()
    options = poptorch.Options().deviceIterations(settings.device_iterations)
    optimizer = poptorch.optim.SGD(model.parameters(), lr=settings.learning_rate, momentum=settings.momentum)
    pulses = Pulses(settings.samples)
    loader = poptorch.DataLoader(options, pulses, batch_size=settings.batch_size)  # finding: samples-dropped
    training = poptorch.trainingModel(model, options, optimizer=optimizer)
    seen = 0
    for _ in range(settings.epochs):
        for pulses, labels in loader:
            _, loss = training(pulses, labels)
            seen += len(labels)
    print(f"{seen} pulses, last loss {loss.item():.4f}")


if __name__ == "__main__":
    run(Settings())
