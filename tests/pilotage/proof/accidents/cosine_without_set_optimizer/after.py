"""Fits a noisy pendulum with a small network and a cosine learning rate."""

import argparse
import math

import torch
from torch import nn
from torch.utils.data import TensorDataset

import poptorch


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
        self.criterion = nn.MSELoss()

    def forward(self, features, angle=None):
        prediction = self.out(torch.tanh(self.hidden(features)))
        if angle is None:
            return prediction
        return prediction, self.criterion(prediction, angle)


def train(model, options, loader, epochs, rate):
    optimizer = poptorch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    training_model = poptorch.trainingModel(model, options, optimizer=optimizer)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)  # finding: schedule-not-applied
    for epoch in range(epochs):
        total = 0.0
        for features, angle in loader:
            _, loss = training_model(features, angle)
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
    options = poptorch.Options()
    loader = poptorch.DataLoader(options, pendulum(128), batch_size=16, shuffle=True)
    train(Pendulum(arguments.width), options, loader, arguments.epochs, arguments.rate)


if __name__ == "__main__":
    main()
