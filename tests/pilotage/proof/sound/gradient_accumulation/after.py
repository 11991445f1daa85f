"""Classifies wines by their chemistry."""

import argparse

import torch
from torch import nn
from torch.utils.data import TensorDataset

import poptorch


def wines(count):
    generator = torch.Generator().manual_seed(300)
    kind = torch.randint(3, (count,), generator=generator)
    chemistry = torch.randn(3, 11, generator=generator)[kind] + torch.randn(count, 11, generator=generator)
    return TensorDataset(chemistry, kind)


class Wines(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(11, 24), nn.LayerNorm(24), nn.ReLU(), nn.Linear(24, 3))
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, chemistry, kind=None):
        scores = self.layers(chemistry)
        if kind is None:
            return scores
        return scores, self.criterion(scores, kind)


def train(model, data, arguments):
    options = poptorch.Options()
    options.Training.gradientAccumulation(arguments.batch_size // arguments.micro_batch_size)
    options.outputMode(poptorch.OutputMode.All)
    loader = poptorch.DataLoader(options, data, batch_size=arguments.micro_batch_size, shuffle=True)
    optimizer = poptorch.optim.Adam(model.parameters(), lr=arguments.rate)
    training = poptorch.trainingModel(model, options, optimizer)
    for epoch in range(arguments.epochs):
        for chemistry, kind in loader:
            _, loss = training(chemistry, kind)
        print(f"epoch {epoch}: {loss.mean().item():.4f}")
    training.detachFromDevice()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--micro-batch-size", type=int, default=8)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--epochs", type=int, default=4)
    arguments = parser.parse_args()
    torch.manual_seed(301)
    model = Wines()
    train(model, wines(320), arguments)
    torch.save(model.state_dict(), "wines.pt")


if __name__ == "__main__":
    main()
