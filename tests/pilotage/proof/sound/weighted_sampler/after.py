"""Finds rare minerals; a sampler shows them more often than they occur."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

import pilotage


def minerals(count):
    rare = (torch.arange(count) % 10 == 0).long()
    spectrum = torch.randn(count, 14) + 0.8 * rare.unsqueeze(1) * torch.linspace(-1, 1, 14)
    return TensorDataset(spectrum, rare)


def balanced(data):
    """Both kinds equally often; samples are drawn with replacement."""
    rare = data.tensors[1]
    share = torch.bincount(rare).float() / len(rare)
    return WeightedRandomSampler(1 / share[rare], num_samples=len(rare), replacement=True)


class Mineral(nn.Module):
    """Rare or not, from fourteen channels."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(14, 24), nn.ReLU(), nn.Linear(24, 2))

    def forward(self, spectrum):
        return self.layers(spectrum)


def train(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    step = pilotage.training(model, optimizer, loss=nn.CrossEntropyLoss())
    for epoch in range(epochs):
        for spectrum, rare in loader:
            _, loss = step(spectrum, rare)
        print(f"epoch {epoch}: {loss.item():.4f}")


def main():
    torch.manual_seed(520)
    data = minerals(240)
    loader = DataLoader(data, batch_size=16, sampler=balanced(data))
    train(Mineral(), loader, epochs=3)


if __name__ == "__main__":
    main()
