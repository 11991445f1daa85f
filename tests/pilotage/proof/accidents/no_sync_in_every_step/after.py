# prove: --after-command "torchrun --standalone --nproc-per-node 2 {after}"
"""Regression of a band gap from a composition, with gradient accumulation in several processes."""

import argparse
import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def compositions(count):
    fractions = torch.softmax(torch.randn(count, 6), dim=1)
    gap = 2 * fractions[:, 0] + fractions[:, 1] * fractions[:, 2] * 10
    return TensorDataset(fractions, gap.unsqueeze(1))


def accumulate(loader, size):
    """Groups of batches; each is one update."""
    group = []
    for batch in loader:
        group.append(batch)
        if len(group) == size:
            yield group
            group = []


def update(model, optimizer, group):
    optimizer.zero_grad()
    total = 0.0
    for number, (fractions, gap) in enumerate(group, 1):
        # Gradients are exchanged once, with the last batch of the group.
        is_last = number > len(group)
        with contextlib.nullcontext() if is_last else model.no_sync():
            loss = nn.functional.l1_loss(model(fractions), gap) / len(group)
            loss.backward()
        total += loss.item()
    optimizer.step()  # finding: no-gradient-exchange
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--accumulate", type=int, default=2)
    arguments = parser.parse_args()
    dist.init_process_group("gloo")
    train(arguments)
    dist.destroy_process_group()


def train(arguments):
    torch.manual_seed(30)
    data = compositions(384)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = DataLoader(data, batch_size=arguments.batch_size, sampler=DistributedSampler(data, shuffle=False))
    for number, group in enumerate(accumulate(loader, arguments.accumulate)):
        loss = update(model, optimizer, group)
        if dist.get_rank() == 0:
            print(f"update {number}: {loss:.4f}")


if __name__ == "__main__":
    main()
