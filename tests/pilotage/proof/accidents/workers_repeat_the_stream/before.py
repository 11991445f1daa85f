"""Trains on a stream of simulated collisions."""

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Collisions(IterableDataset):
    """Simulates events one by one."""

    def __init__(self, count, seed=55):
        super().__init__()
        self.count = count
        self.seed = seed

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.seed)
        for _ in range(self.count):
            tracks = torch.randn(4, 3, generator=generator)
            signal = (tracks.sum(0).norm() > 3.0).float()
            yield tracks.flatten(), signal.unsqueeze(0)


class Trigger(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1))
        self.criterion = nn.BCEWithLogitsLoss()

    def forward(self, tracks, signal):
        scores = self.layers(tracks)
        return scores, self.criterion(scores, signal)


def train(model, loader, optimizer):
    for number, (tracks, signal) in enumerate(loader, 1):
        optimizer.zero_grad()
        _, loss = model(tracks, signal)
        loss.backward()
        optimizer.step()
        if number % 10 == 0:
            print(f"batch {number}: {loss.item():.4f}")


def main():
    torch.manual_seed(56)
    model = Trigger()
    loader = DataLoader(Collisions(400), batch_size=16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, loader, optimizer)


if __name__ == "__main__":
    main()
