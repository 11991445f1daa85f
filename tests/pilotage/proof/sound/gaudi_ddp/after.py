# prove: --after-command "torchrun --standalone --nproc-per-node 2 {after}"
"""Predicts the colour of a star from its spectrum, on several Gaudi cards."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import habana_frameworks.torch.core as htcore
import habana_frameworks.torch.distributed.hccl as hccl

CHANNELS = 24


def stars(count):
    """Planck's law in 24 channels, with noise."""
    generator = torch.Generator().manual_seed(360)
    temperature = 3 + 7 * torch.rand(count, 1, generator=generator)
    wavelength = torch.linspace(0.3, 1.0, CHANNELS)
    spectrum = wavelength**-5 / (torch.exp(14.4 / (wavelength * temperature)) - 1)
    spectrum = spectrum / spectrum.sum(1, keepdim=True)
    return TensorDataset(
        CHANNELS * spectrum + 0.05 * torch.randn(count, CHANNELS, generator=generator), temperature / 10
    )


class Star(nn.Module):
    """The temperature, in units of 10,000 kelvin."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(CHANNELS, 16), nn.SiLU(), nn.Linear(16, 1))

    def forward(self, spectrum):
        return self.layers(spectrum)


def train(device, rank, world_size):
    torch.manual_seed(361)
    data = stars(320)
    model = DistributedDataParallel(Star().to(device), bucket_cap_mb=100, gradient_as_bucket_view=True)
    sampler = DistributedSampler(data, num_replicas=world_size, rank=rank, shuffle=False)
    loader = DataLoader(data, batch_size=32 // world_size, sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for epoch in range(3):
        for spectrum, temperature in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(spectrum.to(device)), temperature.to(device))
            loss.backward()
            htcore.mark_step()
            optimizer.step()
            htcore.mark_step()
        if rank == 0:
            print(f"epoch {epoch}: {loss.item():.5f}")


def main():
    world_size, rank, _ = hccl.initialize_distributed_hpu()
    dist.init_process_group("hccl", rank=rank, world_size=world_size)
    train(torch.device("hpu"), rank, world_size)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
