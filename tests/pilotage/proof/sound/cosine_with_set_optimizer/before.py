"""Predicts the swing of a pendulum; the learning rate follows a cosine."""

import argparse
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def pendulum(count):
    time = torch.linspace(0, 6 * math.pi, count).unsqueeze(1)
    angle = torch.exp(-0.05 * time) * torch.cos(time) + 0.02 * torch.randn_like(time)
    features = torch.cat([torch.sin(time), torch.cos(time), time / 20], dim=1)
    return TensorDataset(features, angle)


class Pendulum(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.hidden = nn.Linear(3, width)
        self.out = nn.Linear(width, 1)

    def forward(self, features):
        return self.out(torch.tanh(self.hidden(features)))


def train(model, loader, epochs, rate):
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    for epoch in range(epochs):
        total = 0.0
        for features, angle in loader:
            optimizer.zero_grad()
            loss = criterion(model(features), angle)
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()
        print(f"epoch {epoch}: loss {total / len(loader):.5f}, next rate {scheduler.get_last_lr()[0]:.5f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--width", type=int, default=16)
    arguments = parser.parse_args()

    torch.manual_seed(11)
    loader = DataLoader(pendulum(128), batch_size=16, shuffle=True)
    train(Pendulum(arguments.width), loader, arguments.epochs, arguments.rate)


if __name__ == "__main__":
    main()
