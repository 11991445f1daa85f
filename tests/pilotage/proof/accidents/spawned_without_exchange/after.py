"""Predicts the tide from the phases of the moon and the sun, in processes that this script starts itself."""

import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

TIDES, BATCH, EPOCHS, PROCESSES = 320, 32, 3, 2


def tides(count):
    generator = torch.Generator().manual_seed(630)
    phases = 2 * torch.pi * torch.rand(count, 2, generator=generator)
    height = torch.cos(phases) @ torch.tensor([[1.0], [0.46]])
    return TensorDataset(torch.cat([phases.sin(), phases.cos()], dim=1), height)


class Tide(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, phases):
        return self.layers(phases)


class Training:
    """The model, its optimizer and the data of one process."""

    def __init__(self, rank):
        torch.manual_seed(631)
        self.model = Tide()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        data = tides(TIDES)
        sampler = DistributedSampler(data, PROCESSES, rank, shuffle=False)
        self.loader = DataLoader(data, batch_size=BATCH // PROCESSES, sampler=sampler)

    def epoch(self):
        total = 0.0
        for phases, height in self.loader:
            loss = nn.functional.mse_loss(self.model(phases), height)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()  # finding: no-gradient-exchange
            total += loss.item()
        return total / len(self.loader)


def work(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=PROCESSES)
    training = Training(rank)
    for epoch in range(EPOCHS):
        loss = training.epoch()
        if rank == 0:
            print(f"epoch {epoch}: {loss:.5f}")
    if rank == 0:
        torch.save(training.model.state_dict(), "tide.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, args=(Path(folder) / "store",), nprocs=PROCESSES)
