"""An LSTM that forecasts a noisy wave, with a falling learning rate and a checkpoint in the middle."""

import argparse
import tempfile
from pathlib import Path

import torch
from torch import nn

import poptorch

LENGTH = 24


def waves(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sine waves of random phase and frequency, and the next value of each."""
    time = torch.arange(LENGTH + 1)
    phase, speed = 6.28 * torch.rand(count, 1), 0.2 + 0.3 * torch.rand(count, 1)
    values = torch.sin(phase + speed * time) + 0.02 * torch.randn(count, LENGTH + 1)
    return values[:, :-1, None].contiguous(), values[:, -1:].contiguous()


class Forecaster(nn.Module):
    def __init__(self, width: int = 32):
        super().__init__()
        self.lstm = nn.LSTM(1, width, batch_first=True)
        self.head = nn.Linear(width, 1)

    def forward(self, sequence, target=None):
        states, _ = self.lstm(sequence)
        forecast = self.head(states[:, -1])
        if target is None:
            return forecast
        return forecast, poptorch.identity_loss((forecast - target) ** 2, reduction="mean")


def train(model, options, optimizer, steps: int) -> float:
    training = poptorch.trainingModel(model, options, optimizer)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=20, gamma=0.7)
    loss = torch.tensor(0.0)
    for _ in range(steps):
        _, loss = training(*waves(64))
        schedule.step()
        training.setOptimizer(optimizer)
    training.destroy()
    return loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    options = poptorch.Options()

    model = Forecaster()
    optimizer = poptorch.optim.Adam(model.parameters(), lr=0.01)
    print(f"first half: loss {train(model, options, optimizer, arguments.steps // 2):.4f}")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.pt"
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
        saved = torch.load(path)
    model = Forecaster()
    model.load_state_dict(saved["model"])
    optimizer = poptorch.optim.Adam(model.parameters(), lr=0.01)
    optimizer.load_state_dict(saved["optimizer"])
    print(f"second half: loss {train(model, options, optimizer, arguments.steps - arguments.steps // 2):.4f}")

    sequences, targets = waves(256)
    forecasts = poptorch.inferenceModel(model.eval())(sequences)
    print(f"mean error of a forecast {(forecasts - targets).abs().mean():.3f}")


if __name__ == "__main__":
    main()
