"""Finds the phase of a noisy wave, in bfloat16."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

POINTS = 24


def waves(count):
    phase = 6.28 * torch.rand(count, 1)
    place = torch.linspace(0, 6.28, POINTS)
    signal = torch.sin(place + phase) + 0.05 * torch.randn(count, POINTS)
    return TensorDataset(signal, torch.cat([phase.sin(), phase.cos()], dim=1))


class Phase(nn.Module):
    """A perceptron for the sine and the cosine of the phase."""

    def __init__(self, width=32):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(POINTS, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, 2),
        )

    def forward(self, signal):
        with torch.autocast("cpu", torch.bfloat16):
            return self.layers(signal)


def evaluate(model, data):
    with torch.no_grad():
        return (model(data.tensors[0]).float() - data.tensors[1]).abs().mean().item()


def main():
    torch.manual_seed(7)
    train, held_out = waves(240), waves(64)
    model = Phase()
    loss_function = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loader = DataLoader(train, batch_size=12)
    for epoch in range(2):
        for signal, target in loader:
            optimizer.zero_grad()
            loss = loss_function(model(signal).float(), target)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.5f}, error {evaluate(model, held_out):.4f}")


if __name__ == "__main__":
    main()
