"""Trains the network of `network.py` on reports about drugs."""

import argparse

import torch
from network import Mentions, reports
from torch.utils.data import DataLoader


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=328)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rate", type=float, default=0.05)
    return parser.parse_args()


def describe(model):
    """Print the shapes of all weights."""
    total = sum(parameter.numel() for parameter in model.parameters())
    print(f"{total} weights")
    for name, parameter in model.named_parameters():
        print(f"{name:20} {tuple(parameter.shape)}")


def train(model, loader, rate, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    for epoch in range(epochs):
        seen = 0
        for mentions, helped in loader:
            optimizer.zero_grad()
            _, loss = model(mentions, helped)
            loss.backward()
            optimizer.step()
            seen += len(helped)
        print(f"epoch {epoch}: {loss.item():.4f} after {seen} reports")


def main():
    arguments = parse()
    torch.manual_seed(491)
    model = Mentions()
    describe(model)
    loader = DataLoader(reports(arguments.reports), batch_size=16)
    train(model, loader, arguments.rate, arguments.epochs)
    torch.save(model.state_dict(), "mentions.pt")


if __name__ == "__main__":
    main()
