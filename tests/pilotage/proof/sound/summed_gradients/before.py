"""Poisson regression of photon counts; the loss is summed over the batch."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass(frozen=True)
class Run:
    batch_size: int = 24
    rate: float = 1e-3
    epochs: int = 2


def photons(count):
    generator = torch.Generator().manual_seed(470)
    settings = torch.rand(count, 4, generator=generator)
    return TensorDataset(settings, torch.poisson(torch.exp(settings.sum(1, keepdim=True)), generator=generator))


class Photons(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
        self.criterion = nn.PoissonNLLLoss(reduction="sum")

    def forward(self, settings, counts):
        rate = self.layers(settings)
        return rate, self.criterion(rate, counts)


def main(run):
    torch.manual_seed(471)
    model = Photons()
    loader = DataLoader(photons(480), batch_size=run.batch_size)
    optimizer = torch.optim.SGD(model.parameters(), lr=run.rate)
    for epoch in range(run.epochs):
        total = 0.0
        for settings, counts in loader:
            optimizer.zero_grad()
            _, loss = model(settings, counts)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader.dataset):.4f}")


if __name__ == "__main__":
    main(Run())
