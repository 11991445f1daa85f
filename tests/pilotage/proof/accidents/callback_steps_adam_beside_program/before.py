"""Predicts the next value of a noisy oscillator; what happens in a step is a list of callbacks."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class State:
    model: nn.Module
    optimizer: torch.optim.Optimizer
    step: int = 0
    loss: torch.Tensor | None = None
    losses: list = field(default_factory=list)


def clear(state):
    state.optimizer.zero_grad()


def backward(state):
    state.loss.backward()


def update(state):
    state.optimizer.step()


def remember(state):
    state.losses.append(state.loss.item())
    if state.step % 10 == 0:
        print(f"step {state.step}: {state.loss.item():.4f}")


@dataclass
class Loop:
    before: list[Callable] = field(default_factory=lambda: [clear])
    after: list[Callable] = field(default_factory=lambda: [backward, update, remember])

    def run(self, state, windows, following, batch=16):
        criterion = nn.MSELoss()
        for start in range(0, len(windows), batch):
            for callback in self.before:
                callback(state)
            prediction = state.model(windows[start : start + batch])
            state.loss = criterion(prediction, following[start : start + batch])
            state.step += 1
            for callback in self.after:
                callback(state)


def oscillator(count, length=8):
    series = torch.sin(0.3 * torch.arange(count + length)) + 0.05 * torch.randn(count + length)
    return series.unfold(0, length, 1)[:count], series[length:].unsqueeze(1)[:count]


if __name__ == "__main__":
    torch.manual_seed(14)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    state = State(model, torch.optim.Adam(model.parameters(), lr=0.01))
    Loop().run(state, *oscillator(640))
