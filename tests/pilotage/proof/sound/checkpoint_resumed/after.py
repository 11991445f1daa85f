"""Trains in two parts, with a checkpoint between them."""

from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import habana_frameworks.torch.core as htcore

CHECKPOINT = Path("springs.ckpt")


def springs(count):
    generator = torch.Generator().manual_seed(530)
    state = torch.randn(count, 4, generator=generator)
    return TensorDataset(state, -state[:, :2] - 0.1 * state[:, 2:])


def build(device):
    model = nn.Sequential(nn.Linear(4, 20), nn.Tanh(), nn.Linear(20, 2)).to(device)
    return model, torch.optim.Adam(model.parameters(), lr=0.01)


def train(model, optimizer, loader, device, epochs):
    for epoch in epochs:
        for state, force in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(state.to(device)), force.to(device))
            loss.backward()
            htcore.mark_step()
            optimizer.step()
            htcore.mark_step()
        print(f"epoch {epoch}: {loss.item():.5f}")


def save(model, optimizer, epoch):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, CHECKPOINT)


def restore(model, optimizer):
    checkpoint = torch.load(CHECKPOINT, map_location="hpu")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    return checkpoint["epoch"]


def main():
    torch.manual_seed(531)
    device = torch.device("hpu")
    loader = DataLoader(springs(192), batch_size=16)
    model, optimizer = build(device)
    train(model, optimizer, loader, device, range(2))
    save(model, optimizer, 2)

    model, optimizer = build(device)
    first = restore(model, optimizer)
    train(model, optimizer, loader, device, range(first, 4))
    save(model, optimizer, 4)


if __name__ == "__main__":
    main()
