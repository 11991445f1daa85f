"""Classifies pulse shapes with a one-dimensional convolution."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Settings:
    samples: int = 300
    batch_size: int = 8
    epochs: int = 1
    learning_rate: float = 0.02
    momentum: float = 0.9


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

    def forward(self, pulses):
        return self.linear(torch.relu(self.conv(pulses)).flatten(1))


def run(settings):
    torch.manual_seed(21)
    model = PulseNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=settings.learning_rate, momentum=settings.momentum)
    loader = DataLoader(Pulses(settings.samples), batch_size=settings.batch_size)
    seen = 0
    for _ in range(settings.epochs):
        for pulses, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(pulses), labels)
            loss.backward()
            optimizer.step()
            seen += len(labels)
    print(f"{seen} pulses, last loss {loss.item():.4f}")


if __name__ == "__main__":
    run(Settings())
