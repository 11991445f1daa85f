"""Finds rare events with a focal loss."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def rare_events(count):
    labels = (torch.arange(count) % 8 == 0).long()
    features = torch.randn(count, 7)
    features[labels == 1, :2] += 1.5
    return TensorDataset(features, labels)


class Detector(nn.Module):
    """A network and its focal loss."""

    def __init__(self, gamma):
        super().__init__()
        self.gamma = gamma
        self.layers = nn.Sequential(nn.Linear(7, 20), nn.ReLU(), nn.Linear(20, 2))

    def forward(self, features, labels):
        scores = self.layers(features)
        entropy = nn.functional.cross_entropy(scores, labels, reduction="none")
        certainty = torch.exp(-entropy)
        return scores, ((1 - certainty) ** self.gamma * entropy).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gamma", type=float, default=2.0)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--epochs", type=int, default=2)
    arguments = parser.parse_args()

    torch.manual_seed(170)
    loader = DataLoader(rare_events(320), batch_size=16)
    model = Detector(arguments.gamma)
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.rate)
    for epoch in range(arguments.epochs):
        for features, labels in loader:
            optimizer.zero_grad()
            scores, loss = model(features, labels)
            loss.backward()
            optimizer.step()
        found = (scores.argmax(1) == 1).sum().item()
        print(f"epoch {epoch}: loss {loss.item():.5f}, {found} found in the last batch")


if __name__ == "__main__":
    main()
