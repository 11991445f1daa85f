# prove: --after-command "torchrun --standalone --nproc-per-node 2 {after}"
"""Learns the sum of two-digit numbers from their digits, with two processes."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

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
        optimizer.step()  # finding: no-gradient-exchange
        return loss.detach()

    return step


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(19)
    data = sums(360)
    model = Adder()
    parallel = DistributedDataParallel(model)  # finding: wrapper-lost
    sampler = DistributedSampler(data, shuffle=False)
    loader = DataLoader(data, batch_size=BATCH // 2, sampler=sampler)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1, momentum=0.9)
    step = make_step(model, optimizer)
    for epoch in range(2):
        losses = torch.stack([step(digits, target) for digits, target in loader])
        mean = losses.mean()
        dist.all_reduce(mean)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {mean.item() / 2:.5f}")
    del parallel
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
