"""Learns a lookup table of trigonometric values in bfloat16."""

import torch
from torch import nn

import pilotage

STEPS, BATCH = 40, 32


class Table(nn.Module):
    """Sine and cosine from four features of the angle."""

    def __init__(self, width=32):
        super().__init__()
        self.first = nn.Linear(4, width)
        self.second = nn.Linear(width, 2)

    def forward(self, angles):
        return self.second(torch.relu(self.first(angles)))


def angles(steps, size, dtype):
    """Angles as four features, with their sine and cosine."""
    generator = torch.Generator().manual_seed(370)
    for _ in range(steps):
        angle = torch.pi * (2 * torch.rand(size, 1, generator=generator) - 1)
        features = torch.cat([angle, angle**2 / 3, angle.abs(), angle.sign()], dim=1)
        values = torch.cat([torch.sin(angle), torch.cos(angle)], dim=1)
        yield features.to(dtype), values.to(dtype)


def train(model, batches, rate):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    program = pilotage.training(model, optimizer, loss=nn.MSELoss())
    for number, (features, values) in enumerate(batches, 1):
        _, loss = program(features, values)
        if number % 10 == 0:
            print(f"{number:3d}: {loss.item():.4f}")


def main():
    torch.manual_seed(371)
    model = Table().to(torch.bfloat16)
    train(model, angles(STEPS, BATCH, torch.bfloat16), rate=0.05)
    torch.save(model.state_dict(), "table.pt")


if __name__ == "__main__":
    main()
