# prove: --after-command "poprun --num-instances 2 --num-replicas 2 python {after}"
"""Fits Kepler's third law to simulated planets by full-batch gradient descent, on two IPUs."""

import torch
from torch import nn
from torch.utils.data import TensorDataset

import popdist
import popdist.poptorch
import poptorch

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
    popdist.init()
    options = popdist.poptorch.Options()
    torch.manual_seed(341)
    model = Kepler()
    # Each instance reads its half of the planets.
    loader = poptorch.DataLoader(options, planets(), batch_size=PLANETS // popdist.getNumTotalReplicas())
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    training = poptorch.trainingModel(model, options, optimizer)
    for epoch in range(30):
        for planet, period in loader:
            _, loss = training(planet, period)
        if (epoch + 1) % REPORT_EVERY == 0 and popdist.getInstanceIndex() == 0:
            print(f"epoch {epoch + 1}: {loss.item():.5f}")
    training.detachFromDevice()
    popdist.execute_on_instances({0}, torch.save, model.state_dict(), "kepler.pt")


if __name__ == "__main__":
    main()
