"""Learns the sum of two-digit numbers from their digits."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCH = 24


def sums(count):
    digits = torch.randint(10, (count, 4))
    first, second = digits[:, 0] * 10 + digits[:, 1], digits[:, 2] * 10 + digits[:, 3]
    return TensorDataset(
        nn.functional.one_hot(digits, 10).float().flatten(1), (first + second).float().unsqueeze(1) / 198
    )


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(40, 30)
        self.out = nn.Linear(30, 1)

    def forward(self, digits):
        return self.out(torch.relu(self.hidden(digits)))


def make_step(model, optimizer):
    """A function that trains on one batch and returns the loss."""
    criterion = nn.SmoothL1Loss()

    def step(digits, target):
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(digits), target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def main():
    torch.manual_seed(19)
    data = sums(360)
    model = Adder()
    loader = DataLoader(data, batch_size=BATCH)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step = make_step(model, optimizer)
    for epoch in range(2):
        losses = torch.stack([step(digits, target) for digits, target in loader])
        print(f"epoch {epoch}: {losses.mean().item():.5f}")


if __name__ == "__main__":
    main()
