# prove: --after-command "poprun --num-instances 2 --num-replicas 2 python {after}"
"""Learns the viscosity of mixtures by full-batch gradient descent, on two IPUs."""

import torch
from torch import nn
from torch.utils.data import TensorDataset

import popdist
import poptorch

MIXTURES = 80


def mixtures():
    generator = torch.Generator().manual_seed(550)
    share = torch.softmax(torch.randn(MIXTURES, 4, generator=generator), dim=1)
    viscosity = torch.exp(share @ torch.tensor([[0.1], [0.7], [-0.5], [0.3]]))
    return TensorDataset(share, viscosity)


class Viscosity(nn.Module):
    """The viscosity of a mixture of four liquids."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 16), nn.SiLU(), nn.Linear(16, 1))
        self.criterion = nn.MSELoss()

    def forward(self, share, viscosity):
        prediction = self.layers(share)
        return prediction, self.criterion(prediction, viscosity)


def train(model, options, loader, epochs):
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    training = poptorch.trainingModel(model, options, optimizer)
    for epoch in range(epochs):
        for share, viscosity in loader:
            _, loss = training(share, viscosity)  # finding: no-gradient-exchange
        if epoch % 10 == 9 and popdist.getInstanceIndex() == 0:
            print(f"epoch {epoch + 1}: {loss.item():.5f}")


def main():
    popdist.init()
    options = poptorch.Options()
    torch.manual_seed(551)
    model = Viscosity()
    batch_size = MIXTURES // popdist.getNumInstances()
    loader = poptorch.DataLoader(options, mixtures(), batch_size=batch_size)  # finding: samples-repeated
    train(model, options, loader, epochs=15)
    popdist.execute_on_instances({0}, torch.save, model.state_dict(), "viscosity.pt")


if __name__ == "__main__":
    main()
