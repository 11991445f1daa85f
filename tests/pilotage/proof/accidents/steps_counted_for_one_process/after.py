"""Predicts tomorrow's temperature from the last ten days, on Gaudi."""

import argparse
import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import habana_frameworks.torch.core as htcore

DAYS = 10


def weather(count):
    generator = torch.Generator().manual_seed(365)
    days = torch.arange(float(count + DAYS))
    temperature = 10 - 8 * torch.cos(days * 2 * torch.pi / 365) + torch.randn(count + DAYS, generator=generator)
    windows = temperature.unfold(0, DAYS, 1)[:count] / 10
    return TensorDataset(windows, temperature[DAYS:].unsqueeze(1) / 10)


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 12, batch_first=True)
        self.out = nn.Linear(12, 1)

    def forward(self, windows):
        states, _ = self.gru(windows.unsqueeze(2))
        return self.out(states[:, -1])


def train_epoch(model, loader, optimizer, steps, device):
    total = 0.0
    for windows, following in itertools.islice(loader, steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(windows.to(device)), following.to(device))
        loss.backward()
        htcore.mark_step()
        optimizer.step()
        htcore.mark_step()
        total += loss.item()
    return total / steps


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--cards", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    arguments = parser.parse_args()

    torch.manual_seed(12)
    device = torch.device("hpu")
    data = weather(320)
    loader = DataLoader(data, batch_size=arguments.batch_size)  # finding: samples-dropped
    model = Forecast().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    steps = len(data) // (arguments.batch_size * arguments.cards)
    for epoch in range(arguments.epochs):
        print(f"epoch {epoch}: {train_epoch(model, loader, optimizer, steps, device):.5f}")


if __name__ == "__main__":
    main()
