"""Learns the viscosity of mixtures by full-batch gradient descent."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

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


def train(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(epochs):
        for share, viscosity in loader:
            optimizer.zero_grad()
            _, loss = model(share, viscosity)
            loss.backward()
            optimizer.step()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: {loss.item():.5f}")


def main():
    torch.manual_seed(551)
    model = Viscosity()
    loader = DataLoader(mixtures(), batch_size=MIXTURES)
    train(model, loader, epochs=30)
    torch.save(model.state_dict(), "viscosity.pt")


if __name__ == "__main__":
    main()
