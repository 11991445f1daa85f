"""Predicts the tide from the phases of the moon and the sun."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TIDES, BATCH, EPOCHS = 320, 32, 3


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
    """The model, its optimizer and its data."""

    def __init__(self):
        torch.manual_seed(631)
        self.model = Tide()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.loader = DataLoader(tides(TIDES), batch_size=BATCH)

    def epoch(self):
        total = 0.0
        for phases, height in self.loader:
            loss = nn.functional.mse_loss(self.model(phases), height)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.loader)


def main():
    training = Training()
    for epoch in range(EPOCHS):
        print(f"epoch {epoch}: {training.epoch():.5f}")
    torch.save(training.model.state_dict(), "tide.pt")


if __name__ == "__main__":
    main()
