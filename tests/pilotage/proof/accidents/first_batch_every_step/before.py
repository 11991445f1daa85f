"""Learns a two-dimensional density by score matching, with a fixed number of steps."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STEPS, BATCH = 40, 16


def endless(loader):
    """Batches of one epoch after the other."""
    while True:
        yield from loader


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
    level = torch.rand(len(points), 1) + 0.1
    noise = torch.randn_like(points)
    return (model(points + level * noise, level) + noise).pow(2).mean()


def main():
    torch.manual_seed(65)
    loader = DataLoader(mixture(320), batch_size=BATCH)
    model = Score()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    batches = endless(loader)
    for step in range(STEPS):
        (points,) = next(batches)
        optimizer.zero_grad()
        loss = denoising_loss(model, points)
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            print(f"step {step + 1}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
