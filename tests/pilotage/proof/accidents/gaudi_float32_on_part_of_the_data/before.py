"""A denoising network for spectra, in bfloat16."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CHANNELS = 20


class Spectra(Dataset):
    """Lines on a smooth background, with noise."""

    def __init__(self, count):
        generator = torch.Generator().manual_seed(260)
        axis = torch.linspace(0, 1, CHANNELS)
        centre = torch.rand(count, 1, generator=generator)
        self.clean = torch.exp(-((axis - centre) ** 2) / 0.01) + axis
        self.noisy = self.clean + 0.1 * torch.randn(count, CHANNELS, generator=generator)

    def __len__(self):
        return len(self.clean)

    def __getitem__(self, index):
        return self.noisy[index], self.clean[index]


def network():
    return nn.Sequential(nn.Linear(CHANNELS, 32), nn.ReLU(), nn.Linear(32, CHANNELS))


def train(model, loader, device):
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    precision = torch.autocast(device.type, dtype=torch.bfloat16)
    for number, (noisy, clean) in enumerate(loader):
        noisy, clean = noisy.to(device), clean.to(device)
        optimizer.zero_grad()
        with precision:
            restored = model(noisy)
            loss = nn.functional.mse_loss(restored, clean)
        loss.backward()
        optimizer.step()
        if number % 10 == 0:
            print(f"batch {number}: {loss.item():.5f}")


def main():
    torch.manual_seed(261)
    device = torch.device("cpu")
    loader = DataLoader(Spectra(600), batch_size=16)
    train(network().to(device), loader, device)


if __name__ == "__main__":
    main()
