"""Attention over the events of a batch picks the interesting ones."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Picker(nn.Module):
    """Scores events and weighs them by their score."""

    def __init__(self, features=6):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, 20), nn.ReLU())
        self.value = nn.Linear(20, 1)
        self.weight = nn.Linear(20, 1)
        self.criterion = nn.SmoothL1Loss()

    def forward(self, events, target):
        hidden = self.body(events)
        weight = torch.softmax(self.weight(hidden), dim=0) * len(events)
        value = self.value(hidden) * weight
        loss = self.criterion(value, target)
        return value, loss + 0.1 * self.value.weight.pow(2).sum()


def events(count):
    generator = torch.Generator().manual_seed(280)
    features = torch.randn(count, 6, generator=generator)
    return TensorDataset(features, features[:, :1] * features[:, 1:2])


def train(model, loader, optimizer, epochs):
    for epoch in range(epochs):
        for batch, target in loader:
            optimizer.zero_grad()
            _, loss = model(batch, target)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


def main():
    torch.manual_seed(281)
    model = Picker()
    loader = DataLoader(events(256), batch_size=16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    train(model, loader, optimizer, epochs=3)


if __name__ == "__main__":
    main()
