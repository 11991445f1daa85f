"""Estimates the mass of a particle from the momenta of its two decay products."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def decays(count):
    generator = torch.Generator().manual_seed(100)
    first, second = torch.randn(2, count, 3, generator=generator)
    energy = first.norm(dim=1) + second.norm(dim=1)
    mass = (energy**2 - (first + second).pow(2).sum(1)).clamp(min=0).sqrt()
    return TensorDataset(torch.cat([first, second], dim=1), mass.unsqueeze(1))


class MassNet(nn.Module):
    """The invariant mass from six momenta."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 32), nn.SiLU(), nn.Linear(32, 16), nn.SiLU(), nn.Linear(16, 1))

    def forward(self, momenta):
        return self.layers(momenta)


def train(net, loader, epochs):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    criterion = nn.MSELoss()
    for epoch in range(epochs):
        total = torch.zeros(())
        for momenta, mass in loader:
            optimizer.zero_grad()
            loss = criterion(net(momenta), mass)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch}: {total.item() / len(loader):.5f}")


def main():
    torch.manual_seed(101)
    net = MassNet()
    loader = DataLoader(decays(320), batch_size=32)
    train(net, loader, epochs=3)
    with torch.no_grad():
        print(f"mass of two opposite unit momenta: {net(torch.tensor([[1.0, 0, 0, -1, 0, 0]])).item():.2f}")


if __name__ == "__main__":
    main()
