# prove: --after-command "torchrun --standalone --nproc-per-node 2 {after}"
"""Learns the sign of a permutation of four elements, in two processes."""

from itertools import permutations

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


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


def average_gradients(model):
    gradients = [parameter.grad for parameter in model.parameters()]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
        gradient.copy_(part.view_as(gradient))


def train(model, loader, epochs):
    size = sum(parameter.numel() for parameter in model.parameters())
    print(f"{size} weights, {len(loader)} steps in each epoch")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    for epoch in range(epochs):
        for order, sign in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(order), sign)
            loss.backward()
            average_gradients(model)
            optimizer.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {loss.item():.4f}")


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(430)
    data = all_permutations(10)
    sampler = DistributedSampler(data, shuffle=False)
    train(Sign(), DataLoader(data, batch_size=12, sampler=sampler), epochs=4)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
