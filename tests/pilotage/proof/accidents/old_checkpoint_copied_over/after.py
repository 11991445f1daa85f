"""Trains a controller for an inverted pendulum from recorded actions."""

import shutil
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pilotage

RUN = Path("runs/pendulum")


def recordings(count):
    state = torch.randn(count, 4)
    action = (state @ torch.tensor([[1.0], [0.5], [-2.0], [0.3]])).clamp(-2, 2)
    return TensorDataset(state, action)


class Controller(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 20), nn.Tanh(), nn.Linear(20, 1))

    def forward(self, state):
        return self.layers(state)


def save(model, name):
    RUN.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), RUN / name)  # finding: weights-not-saved


def train(model, data, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    step = pilotage.training(model, optimizer, loss=nn.MSELoss())
    loader = DataLoader(data, batch_size=16)
    for epoch in range(epochs):
        save(model, f"epoch{epoch}.pt")
        for state, action in loader:
            _, loss = step(state, action)
        print(f"epoch {epoch}: {loss.item():.4f}")
    step.detach()
    save(model, "controller.pt")


def publish():
    """The file that the robot loads: the newest, by name."""
    newest = sorted(RUN.glob("epoch*.pt"), reverse=True)[-1]
    shutil.copy(newest, RUN / "controller.pt")


if __name__ == "__main__":
    torch.manual_seed(220)
    model = Controller()
    train(model, recordings(256), epochs=3)
    publish()
