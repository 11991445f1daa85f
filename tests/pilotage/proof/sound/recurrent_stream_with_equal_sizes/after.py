"""Adds up a sequence with a recurrent network; as many steps in time as samples in a batch."""

import contextlib

import torch
from torch import nn
from torch.utils.data import IterableDataset

import poptorch

LENGTH = BATCH = 10


class Sequences(IterableDataset):
    """A stream without an index, the same each time."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        generator = torch.Generator().manual_seed(77)
        for _ in range(self.count):
            values = torch.rand(LENGTH, 1, generator=generator)
            yield values, values.sum(0)


class Adder(nn.Module):
    def __init__(self, hidden=10):
        super().__init__()
        self.cell = nn.GRU(1, hidden)
        self.last = nn.Linear(hidden, 1)

    def forward(self, values, total):
        states, _ = self.cell(values.transpose(0, 1))
        found = self.last(states[-1])
        return found, nn.functional.mse_loss(found, total)


def steps(loader, train):
    """Yields the loss of each update."""
    for values, total in loader:
        yield train(values, total)


def compiled(model, optimizer, options):
    program = poptorch.trainingModel(model, options, optimizer)
    return lambda values, total: program(values, total)[1]


def main():
    with contextlib.ExitStack() as stack:
        stack.callback(print, "done")
        torch.manual_seed(78)
        model = Adder()
        optimizer = poptorch.optim.RMSprop(model.parameters(), lr=0.01)
        options = poptorch.Options()
        loader = poptorch.DataLoader(options, Sequences(400), batch_size=BATCH)
        losses = [loss.item() for loss in steps(loader, compiled(model, optimizer, options))]
        print(min(losses), losses[-1])


if __name__ == "__main__":
    main()
