"""Learns a two-dimensional density by score matching, with a fixed number of steps."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import habana_frameworks.torch.core as htcore

STEPS, BATCH = 40, 16
DEVICE = torch.device("hpu")


def fetch(loader):
    """The next batch, on the card."""
    (points,) = next(iter(loader))
    return points.to(DEVICE)


def mixture(count):
    centres = torch.tensor([[-1.5, 0.0], [1.5, 0.0], [0.0, 2.0]])
    return TensorDataset(centres[torch.arange(count) % 3] + 0.3 * torch.randn(count, 2))


class Score(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 32), nn.SiLU(), nn.Linear(32, 2))

    def forward(self, points, level):
        return self.layers(torch.cat([points, level], dim=1))


def denoising_loss(model, points):
    level = torch.rand(len(points), 1).to(DEVICE) + 0.1
    noise = torch.randn(len(points), 2).to(DEVICE)
    return (model(points + level * noise, level) + noise).pow(2).mean()


def main():
    torch.manual_seed(65)
    loader = DataLoader(mixture(320), batch_size=BATCH)  # finding: samples-repeated, samples-dropped
    model = Score().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(STEPS):
        points = fetch(loader)
        optimizer.zero_grad()
        loss = denoising_loss(model, points)
        loss.backward()
        htcore.mark_step()
        optimizer.step()
        htcore.mark_step()
        if step % 10 == 9:
            print(f"step {step + 1}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
