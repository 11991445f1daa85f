"""Fits Kepler's third law to simulated planets by full-batch gradient descent."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

PLANETS = 96
REPORT_EVERY = 10


def planets():
    """The same planets in each run."""
    generator = torch.Generator().manual_seed(340)
    axis = 0.3 + 2 * torch.rand(PLANETS, 1, generator=generator)
    mass = 0.5 + torch.rand(PLANETS, 1, generator=generator)
    return TensorDataset(torch.cat([axis, mass], dim=1), axis.pow(1.5) / mass.sqrt())


class Kepler(nn.Module):
    """The period of a planet from its axis and the mass of its star."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, planet, period=None):
        prediction = self.layers(planet)
        if period is None:
            return prediction
        return prediction, nn.functional.mse_loss(prediction, period)


def main():
    torch.manual_seed(341)
    model = Kepler()
    loader = DataLoader(planets(), batch_size=PLANETS)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(30):
        for planet, period in loader:
            optimizer.zero_grad()
            _, loss = model(planet, period)
            loss.backward()
            optimizer.step()
        if (epoch + 1) % REPORT_EVERY == 0:
            print(f"epoch {epoch + 1}: {loss.item():.5f}")
    torch.save(model.state_dict(), "kepler.pt")


if __name__ == "__main__":
    main()
