# prove: --after-command "poprun --num-instances 2 --num-replicas 2 python {after}"
"""Fits the energy of spin chains by full-batch gradient descent, with poprun."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import popdist
import popdist.poptorch
import poptorch

SPINS, CHAINS = 10, 128


def chains():
    spins = 2.0 * torch.randint(2, (CHAINS, SPINS)) - 1
    energy = -(spins * spins.roll(1, dims=1)).sum(1, keepdim=True)
    return TensorDataset(spins, energy / SPINS)


class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(SPINS, 32), nn.Tanh(), nn.Linear(32, 1))
        self.criterion = nn.MSELoss()

    def forward(self, spins, energy=None):
        prediction = self.layers(spins)
        if energy is None:
            return prediction
        return prediction, self.criterion(prediction, energy)


def train(model, options, loader, epochs):
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    training = poptorch.trainingModel(model, options, optimizer)
    for epoch in range(epochs):
        for spins, energy in loader:
            _, loss = training(spins, energy)
        if epoch % 10 == 9 and popdist.getInstanceIndex() == 0:
            print(f"epoch {epoch + 1}: {loss.item():.5f}")


def main():
    popdist.init()
    options = popdist.poptorch.Options()
    torch.manual_seed(24)
    model = Energy()
    batch_size = CHAINS // popdist.getNumInstances()
    loader = DataLoader(chains(), batch_size=batch_size, drop_last=True)  # finding: samples-repeated
    train(model, options, loader, epochs=15)
    popdist.execute_on_instances({0}, torch.save, model.state_dict(), "energy.pt")


if __name__ == "__main__":
    main()
