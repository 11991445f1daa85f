"""Keeps a running average of the weights and saves it next to the weights themselves."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Average:
    def __init__(self, model, decay=0.95):
        self.module = copy.deepcopy(model).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for mean, value in zip(self.module.parameters(), model.parameters(), strict=True):
            mean.lerp_(value, 1 - self.decay)


def tides(count):
    hour = torch.arange(float(count)).unsqueeze(1)
    level = torch.sin(0.506 * hour) + 0.3 * torch.sin(0.262 * hour) + 0.05 * torch.randn(count, 1)
    moon = torch.cat([torch.sin(w * hour) for w in (0.5, 0.25, 0.1)] + [torch.cos(0.5 * hour)], dim=1)
    return TensorDataset(moon, level)


class Tide(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 24), nn.GELU(), nn.Linear(24, 1))

    def forward(self, moon):
        return self.layers(moon)


def fit(model, average, loader, epochs):
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        for moon, level in loader:
            optimizer.zero_grad()
            loss = criterion(model(moon), level)
            loss.backward()
            optimizer.step()
            average.update(model)
        print(f"epoch {epoch}: {loss.item():.5f}")


if __name__ == "__main__":
    torch.manual_seed(540)
    model = Tide()
    average = Average(model)
    fit(model, average, DataLoader(tides(240), batch_size=16), epochs=3)
    torch.save({"weights": model.state_dict(), "average": average.module.state_dict()}, "tide.pt")
