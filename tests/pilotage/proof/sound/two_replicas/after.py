"""Locates a source from the signals of eight antennas."""

import torch
from torch import nn
from torch.utils.data import TensorDataset

import poptorch

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
    options = poptorch.Options().replicationFactor(2)
    loader = poptorch.DataLoader(options, data, batch_size=12)
    model = Locator()
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    training = poptorch.trainingModel(model, options, optimizer)
    for epoch in range(2):
        for signals, position in loader:
            _, loss = training(signals, position)
        print(f"epoch {epoch}: mean squared error {loss.mean().item():.5f}")
    training.detachFromDevice()
    model.eval()
    guess = poptorch.inferenceModel(model)(data.tensors[0])
    print(f"mean distance {(guess - data.tensors[1]).norm(dim=1).mean():.4f}")


if __name__ == "__main__":
    main()
