"""Locates a source from the signals of eight antennas."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ANTENNAS = torch.tensor([[x, y] for x in (-1.0, 0.0, 1.0) for y in (-1.0, 0.0, 1.0) if (x, y) != (0.0, 0.0)])


def sources(count):
    position = 2 * torch.rand(count, 2) - 1
    distance = torch.cdist(position, ANTENNAS)
    return TensorDataset(1 / (0.2 + distance) + 0.02 * torch.randn(count, len(ANTENNAS)), position)


class Locator(nn.Module):
    """The position in the plane from the strength of the signals."""

    def __init__(self, width=32):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(len(ANTENNAS), width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, signals, position=None):
        guess = self.layers(signals)
        if position is None:
            return guess
        return guess, nn.functional.mse_loss(guess, position)


def main():
    torch.manual_seed(310)
    data = sources(480)
    loader = DataLoader(data, batch_size=24)
    model = Locator()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(2):
        for signals, position in loader:
            optimizer.zero_grad()
            _, loss = model(signals, position)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: mean squared error {loss.item():.5f}")
    model.eval()
    with torch.no_grad():
        guess = model(data.tensors[0])
    print(f"mean distance {(guess - data.tensors[1]).norm(dim=1).mean():.4f}")


if __name__ == "__main__":
    main()
