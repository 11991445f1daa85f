"""Trains the network of `network.py` on reports about drugs."""

import argparse

import torch
from network import Mentions, reports

import poptorch


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


def train(model, options, loader, rate, epochs):
    optimizer = poptorch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    training = poptorch.trainingModel(model, options, optimizer)
    for epoch in range(epochs):
        seen = 0
        for mentions, helped in loader:
            _, loss = training(mentions, helped)
            seen += len(helped)
        print(f"epoch {epoch}: {loss.mean().item():.4f} after {seen} reports")
    training.detachFromDevice()


def main():
    arguments = parse()
    torch.manual_seed(491)
    model = Mentions()
    describe(model)
    options = poptorch.Options().replicationFactor(2)
    data = reports(arguments.reports)
    loader = poptorch.DataLoader(options, data, batch_size=8)  # finding: samples-dropped
    train(model, options, loader, arguments.rate, arguments.epochs)
    torch.save(model.state_dict(), "mentions.pt")


if __name__ == "__main__":
    main()
