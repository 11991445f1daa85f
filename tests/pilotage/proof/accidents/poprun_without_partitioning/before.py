"""Fits the energy of spin chains by full-batch gradient descent."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

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


def train(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(epochs):
        for spins, energy in loader:
            optimizer.zero_grad()
            _, loss = model(spins, energy)
            loss.backward()
            optimizer.step()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: {loss.item():.5f}")


def main():
    torch.manual_seed(24)
    model = Energy()
    loader = DataLoader(chains(), batch_size=CHAINS)
    train(model, loader, epochs=30)
    torch.save(model.state_dict(), "energy.pt")


if __name__ == "__main__":
    main()
