"""Mixed-precision training of a small mixer network."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Mixer(nn.Module):
    """One mixing block over six patches of eight channels."""

    def __init__(self, patches=6, channels=8, classes=4):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.tokens = nn.Sequential(nn.Linear(patches, 16), nn.GELU(), nn.Linear(16, patches))
        self.channels = nn.Sequential(nn.Linear(channels, 16), nn.GELU(), nn.Linear(16, channels))
        self.head = nn.Linear(channels, classes)

    def forward(self, x):
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.channels(self.norm2(x))
        return self.head(x.mean(1))


def patches(count):
    labels = torch.arange(count) % 4
    x = 0.3 * torch.randn(count, 6, 8)
    x[torch.arange(count), labels] += 1.0
    return TensorDataset(x, labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--no-amp", dest="amp", action="store_false")
    arguments = parser.parse_args()

    torch.manual_seed(34)
    device = torch.device(arguments.device)
    model = Mixer().to(device)
    loader = DataLoader(patches(320), batch_size=16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(2):
        for x, labels in loader:
            x, labels = x.to(device), labels.to(device)
            optimizer.zero_grad()
            with torch.autocast(device.type, dtype=torch.bfloat16, enabled=arguments.amp):
                loss = nn.functional.cross_entropy(model(x), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
