"""Attention over the events of a batch picks the interesting ones."""

import torch
from torch import nn
from torch.utils.data import TensorDataset

import poptorch


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
        scores = self.weight(hidden)
        weight = torch.softmax(scores, dim=0) * len(events)  # finding: loss-depends-on-batch-split
        value = self.value(hidden) * weight
        loss = self.criterion(value, target)  # finding: loss-root-differs
        return value, loss + 0.1 * self.value.weight.pow(2).sum()


def events(count):
    generator = torch.Generator().manual_seed(280)
    features = torch.randn(count, 6, generator=generator)
    return TensorDataset(features, features[:, :1] * features[:, 1:2])


def train(training, loader, epochs):
    for epoch in range(epochs):
        for batch, target in loader:
            _, loss = training(batch, target)
        print(f"epoch {epoch}: {loss.item():.4f}")


def main():
    torch.manual_seed(281)
    model = Picker()
    options = poptorch.Options()
    options.Training.gradientAccumulation(2)
    loader = poptorch.DataLoader(options, events(256), batch_size=8)
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.05)
    train(poptorch.trainingModel(model, options, optimizer), loader, epochs=3)


if __name__ == "__main__":
    main()
