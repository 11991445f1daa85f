"""Learns the sign of a permutation of four elements."""

from itertools import permutations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def all_permutations(repeats):
    """Each permutation as a matrix, with its sign."""
    orders = torch.tensor(list(permutations(range(4))))
    sign = torch.stack([torch.det(torch.eye(4)[order]) for order in orders])
    matrices = nn.functional.one_hot(orders, 4).float().flatten(1)
    return TensorDataset(matrices.repeat(repeats, 1), sign.repeat(repeats))


class Sign(nn.Module):
    """A wide hidden layer: the sign is not linear in the matrix."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(16, 48)
        self.out = nn.Linear(48, 1)

    def forward(self, order):
        return torch.tanh(self.out(torch.relu(self.hidden(order)))).squeeze(1)


def train(model, loader, epochs):
    size = sum(parameter.numel() for parameter in model.parameters())
    print(f"{size} weights, {len(loader)} steps in each epoch")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    for epoch in range(epochs):
        for order, sign in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(order), sign)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


def main():
    torch.manual_seed(430)
    loader = DataLoader(all_permutations(10), batch_size=24)
    train(Sign(), loader, epochs=4)


if __name__ == "__main__":
    main()
