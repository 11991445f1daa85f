"""The classifier of digits trained by several processes: torchrun --nproc-per-node=2 ddp_cpu.py."""

import argparse

import torch
import torch.distributed as dist
from mnist_cpu import Network, digits
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=3)
    arguments = parser.parse_args()

    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    train(arguments, rank, world_size)
    # The model is deleted by now: one that outlives its group may wait for the group's threads forever.
    dist.destroy_process_group()


def train(arguments, rank, world_size):
    torch.manual_seed(1)
    device = torch.device("cpu")
    data = digits("train")
    sampler = DistributedSampler(data, num_replicas=world_size, rank=rank, seed=1, drop_last=True)
    loader = DataLoader(data, batch_size=arguments.batch_size, sampler=sampler, drop_last=True)
    model = Network().to(device)
    model = DistributedDataParallel(model, bucket_cap_mb=100, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(1, arguments.epochs + 1):
        sampler.set_epoch(epoch)
        total = torch.zeros((), device=device)
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad(set_to_none=True)
            loss = functional.nll_loss(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch}: loss {total.item() / (world_size * len(loader)):.9f}", flush=True)


if __name__ == "__main__":
    main()
