"""Fits tracks with the network of `network.py`."""

import argparse

import torch
from network import Attention, tracks
from torch import nn
from torch.utils.data import DataLoader

import pilotage


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tracks", type=int, default=320)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=2)
    return parser.parse_args()


def smoothed(history, window=5):
    """The mean of the last few losses."""
    return [sum(history[end - window : end]) / window for end in range(window, len(history) + 1)]


def train(model, loader, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    step = pilotage.training(model, optimizer, loss=nn.MSELoss())
    history = []
    for epoch in range(epochs):
        for hits, slope in loader:
            _, loss = step(hits, slope)
            history.append(loss.item())
        print(f"epoch {epoch}: {history[-1]:.5f}")
    return history


def main():
    arguments = parse()
    torch.manual_seed(481)
    model = Attention()
    loader = DataLoader(tracks(arguments.tracks), batch_size=arguments.batch_size)
    history = train(model, loader, arguments.epochs)
    curve = smoothed(history)
    print(f"{len(history)} steps, from {curve[0]:.5f} to {curve[-1]:.5f}")
    print(f"lowest {min(curve):.5f}")


if __name__ == "__main__":
    main()
