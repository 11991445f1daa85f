"""Finds the phase of a noisy wave, in bfloat16."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pilotage

POINTS = 24


def waves(count):
    phase = 6.28 * torch.rand(count, 1)
    place = torch.linspace(0, 6.28, POINTS)
    signal = torch.sin(place + phase) + 0.05 * torch.randn(count, POINTS)
    return TensorDataset(signal, torch.cat([phase.sin(), phase.cos()], dim=1))


class Phase(nn.Module):
    """A perceptron for the sine and the cosine of the phase."""

    def __init__(self, width=32):
        super().__init__()
        self.in_bfloat16 = True
        self.layers = nn.Sequential(
            nn.Linear(POINTS, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, 2),
        )

    def forward(self, signal):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.in_bfloat16):
            return self.layers(signal).float()


class Trainer:
    """Trains by a program, and looks at held-out waves after each epoch."""

    def __init__(self, model, held_out):
        self.model, self.held_out = model, held_out
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        self.program = pilotage.training(model, optimizer, loss=nn.MSELoss())

    def epoch(self, loader):
        for signal, target in loader:
            _, loss = self.program(signal, target)  # finding: precision-not-as-asked
        return loss.item()

    def error(self):
        # An exact figure for the table, but training stays in float32 after it.
        self.model.in_bfloat16 = False
        with torch.no_grad():
            return (self.model(self.held_out.tensors[0]) - self.held_out.tensors[1]).abs().mean().item()


def main():
    torch.manual_seed(7)
    train, held_out = waves(240), waves(64)
    trainer = Trainer(Phase(), held_out)
    loader = DataLoader(train, batch_size=12)
    for number in range(2):
        print(f"epoch {number}: loss {trainer.epoch(loader):.5f}, error {trainer.error():.4f}")


if __name__ == "__main__":
    main()
