"""Tells five kinds of sand from the histogram of their grains, with a small perceptron, on the IPU.

The first call compiles, so it is kept out of the measurement.
"""

import time

import torch
from torch import nn
from torch.utils.data import Dataset

import poptorch

BINS, KINDS, BATCH = 14, 5, 12


class Sand(Dataset):
    """Histograms of grain sizes; each kind has its own typical size."""

    def __init__(self, count):
        generator = torch.Generator().manual_seed(811)
        self.kinds = torch.randint(KINDS, (count,), generator=generator)
        centre = 2.0 + 2.4 * self.kinds.unsqueeze(1)
        bins = torch.arange(float(BINS)).unsqueeze(0)
        self.histograms = torch.exp(-((bins - centre) ** 2) / 6) + 0.1 * torch.rand(count, BINS, generator=generator)

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, index):
        return self.histograms[index], self.kinds[index]


class Sieve(nn.Module):
    def __init__(self, width=20):
        super().__init__()
        self.inner = nn.Linear(BINS, width)
        self.outer = nn.Linear(width, KINDS)

    def forward(self, histogram, kind):
        scores = self.outer(torch.tanh(self.inner(histogram)))
        return scores, nn.functional.cross_entropy(scores, kind)


def warm_up(model, options, optimizer, batch):
    training = poptorch.trainingModel(model, options, optimizer)
    training(*batch)
    training.detachFromDevice()
    return training


def measured(model, optimizer, loader, epochs, options):
    """Trains, and returns how many samples a second that was."""
    begin, seen, training = time.perf_counter(), 0, None
    for _ in range(epochs):
        for histogram, kind in loader:
            if training is None:
                training = warm_up(model, options, optimizer, (histogram, kind))
                begin = time.perf_counter()
                continue
            optimizer.zero_grad()
            scores, loss = model(histogram, kind)
            loss.backward()
            optimizer.step()  # finding: wrapper-lost
            seen += len(kind)
        print(f"loss {loss.item():.4f}, right {(scores.argmax(1) == kind).float().mean().item():.2f}")
    return seen / (time.perf_counter() - begin)


if __name__ == "__main__":
    torch.manual_seed(812)
    settings = poptorch.Options()
    sieve = Sieve()
    sgd = poptorch.optim.SGD(sieve.parameters(), lr=0.2)
    sand = poptorch.DataLoader(settings, Sand(240), batch_size=BATCH, shuffle=True)
    speed = measured(sieve, sgd, sand, epochs=3, options=settings)
    print(f"{speed:.0f} samples/s")
