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
    print(f"{len(history)} steps, from {history[0]:.5f} to {history[-1]:.5f}")


if __name__ == "__main__":
    main()
