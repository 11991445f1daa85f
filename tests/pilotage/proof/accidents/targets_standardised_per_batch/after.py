"""Predicts house prices; the targets are standardised before the loss."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import TensorDataset

import poptorch


@dataclass
class Settings:
    houses: int = 640
    micro_batch_size: int = 4
    accumulation: int = 4
    replicas: int = 2
    rate: float = 0.02
    seed: int = 111


def houses(count):
    features = torch.rand(count, 5)
    price = 100 + 80 * features[:, :1] + 40 * features[:, 1:2] * features[:, 2:3] + 5 * torch.randn(count, 1)
    return TensorDataset(features, price)


class Prices(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Linear(20, 1))

    def forward(self, features, price=None):
        prediction = self.layers(features)
        if price is None:
            return prediction
        target = (price - price.mean(dim=0)) / (price.std(dim=0) + 1e-3)  # finding: loss-depends-on-batch-split
        return prediction, nn.functional.mse_loss(prediction, target)


def main(settings):
    torch.manual_seed(settings.seed)
    model = Prices()
    data = houses(settings.houses)
    options = poptorch.Options().replicationFactor(settings.replicas)
    options.Training.gradientAccumulation(settings.accumulation)
    loader = poptorch.DataLoader(options, data, batch_size=settings.micro_batch_size)
    optimizer = poptorch.optim.SGD(model.parameters(), lr=settings.rate, momentum=0.9)
    training = poptorch.trainingModel(model, options, optimizer)
    for epoch in range(2):
        for features, price in loader:
            _, loss = training(features, price)
        print(f"epoch {epoch + 1}: {loss.mean().item():.4f}")


if __name__ == "__main__":
    main(Settings())
