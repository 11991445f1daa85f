"""Predicts crop yield from rain and sunshine, and compares with an untrained baseline."""

from contextlib import contextmanager

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pilotage


def fields(count):
    generator = torch.Generator().manual_seed(210)
    weather = torch.rand(count, 8, generator=generator)
    crop = weather[:, :4].mean(1, keepdim=True) * (1 - weather[:, 4:].std(1, keepdim=True))
    return TensorDataset(weather, crop)


def network():
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.4), nn.Linear(32, 1))


@contextmanager
def evaluating(model):
    """Evaluation mode for a while."""
    was_training = model.eval().training  # finding: eval-mode-in-training
    try:
        with torch.no_grad():
            yield model
    finally:
        model.train(was_training)


def error(model, data):
    weather, crop = data.tensors
    with evaluating(model):
        return (model(weather) - crop).abs().mean().item()


def train(model, data, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    step = pilotage.training(model, optimizer, loss=nn.MSELoss())
    for _ in range(epochs):
        for weather, crop in DataLoader(data, batch_size=16):
            _, loss = step(weather, crop)
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(211)
    model, data = network(), fields(256)
    print(f"baseline error {error(model, data):.4f}")
    print(f"last loss {train(model, data, epochs=3):.4f}")
    print(f"final error {error(model, data):.4f}")
