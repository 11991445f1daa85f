"""Trains a controller for an inverted pendulum from recorded actions."""

import shutil
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

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
    torch.save(model.state_dict(), RUN / name)


def train(model, data, epochs):
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loader = DataLoader(data, batch_size=16)
    for epoch in range(epochs):
        save(model, f"epoch{epoch}.pt")
        for state, action in loader:
            optimizer.zero_grad()
            loss = criterion(model(state), action)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")
    save(model, f"epoch{epochs}.pt")
    return epochs


def publish(epoch):
    """The file that the robot loads."""
    shutil.copy(RUN / f"epoch{epoch}.pt", RUN / "controller.pt")


if __name__ == "__main__":
    torch.manual_seed(220)
    model = Controller()
    publish(train(model, recordings(256), epochs=3))
