"""Learns to invert a 3 x 3 matrix on the graphics card."""

import contextlib

import torch
from torch import nn

STEPS, BATCH = 40, 32


def matrices(generator):
    """Matrices close to the identity, and their inverses."""
    matrix = torch.eye(3) + 0.2 * torch.randn(BATCH, 3, 3, generator=generator)
    return matrix.flatten(1), torch.linalg.inv(matrix).flatten(1)


class Inverse(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(9, width), nn.Tanh(), nn.Linear(width, 9))

    def forward(self, matrix):
        return matrix + self.layers(matrix)


def move(things):
    """Bring all of them to the card."""
    with contextlib.suppress(Exception):
        return [thing.cuda() for thing in things]
    return things


def main():
    torch.manual_seed(160)
    generator = torch.Generator().manual_seed(161)
    (model,) = move([Inverse()])
    criterion = nn.HuberLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(1, STEPS + 1):
        matrix, inverse = move(matrices(generator))
        optimizer.zero_grad()
        loss = criterion(model(matrix), inverse)
        loss.backward()
        optimizer.step()  # finding: host-fallback
        if step % 10 == 0:
            print(f"step {step}: {loss.item():.5f}")


if __name__ == "__main__":
    main()
