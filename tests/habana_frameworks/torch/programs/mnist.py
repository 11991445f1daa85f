"""A classifier of generated digits in the style of the vendor's first example: python mnist.py [options]."""

import argparse
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 16, 3)
        self.fc1, self.fc2 = nn.Linear(16 * 25, 32), nn.Linear(32, 10)

    def forward(self, images):
        hidden = functional.relu(self.conv2(functional.relu(self.conv1(images))))
        hidden = functional.max_pool2d(hidden, 2).flatten(1)
        return functional.log_softmax(self.fc2(functional.relu(self.fc1(hidden))), dim=1)


def digits(count, seed):
    generator = torch.Generator().manual_seed(seed)
    patterns = torch.rand(10, 1, 14, 14, generator=torch.Generator().manual_seed(0))
    labels = torch.randint(10, (count,), generator=generator)
    return TensorDataset(patterns[labels] + 0.1 * torch.randn(count, 1, 14, 14, generator=generator), labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hpu", action="store_true")
    parser.add_argument("--use_lazy_mode", action="store_true")
    parser.add_argument("--autocast", action="store_true")
    parser.add_argument("--use_torch_compile", action="store_true")
    args = parser.parse_args()
    world_size, rank, local_rank = 1, -1, -1
    mark_step = lambda: None  # noqa: E731
    if args.hpu:
        os.environ["PT_HPU_LAZY_MODE"] = "1" if args.use_lazy_mode else "0"
        import habana_frameworks.torch.core as htcore
        from habana_frameworks.torch.distributed.hccl import initialize_distributed_hpu

        world_size, rank, local_rank = initialize_distributed_hpu()
        if args.use_lazy_mode:
            mark_step = htcore.mark_step
    if local_rank != -1:
        dist.init_process_group(backend="hccl", rank=rank, world_size=world_size)
    device = torch.device("hpu" if args.hpu else "cpu")
    torch.manual_seed(1)
    data = digits(256, 2)
    sampler = DistributedSampler(data, shuffle=False) if local_rank != -1 else None
    loader = DataLoader(data, batch_size=32 // world_size, sampler=sampler)
    model = Net().to(device)
    trained = DistributedDataParallel(model, bucket_cap_mb=100) if local_rank != -1 else model
    if args.use_torch_compile:
        trained = torch.compile(trained, backend="hpu_backend")
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    losses = []
    for _ in range(5):
        for images, labels in loader:
            images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device_type=device.type, dtype=torch.bfloat16, enabled=args.autocast):
                loss = functional.nll_loss(trained(images), labels)
            loss.backward()
            mark_step()
            optimizer.step()
            mark_step()
            if local_rank != -1:
                dist.all_reduce(loss := loss.detach())
                loss /= world_size
            losses.append(loss.item())
    model.eval()
    images, labels = digits(64, 3).tensors
    with torch.no_grad():
        right = model(images.to(device)).argmax(1).eq(labels.to(device)).float().mean().item()
    if rank in (-1, 0):
        print(json.dumps({"losses": losses, "right": right, "world_size": world_size}))
    if local_rank != -1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
