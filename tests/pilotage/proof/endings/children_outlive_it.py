# ending: forks
"""Trains while helpers write statistics; nobody tells the helpers to stop."""

import os
import time

import torch
from torch import nn


def start_helper(number):
    """One helper stays in the group of the script, the other opens its own session."""
    if os.fork() > 0:
        return
    if number % 2:
        os.setsid()
    while True:
        time.sleep(1)


def main():
    for number in range(2):
        start_helper(number)
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(10):
        inputs = torch.randn(8, 4)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), inputs.sum(1, keepdim=True))
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
