# ending: hangs
"""Fits a line; the third batch comes from a producer that has stopped."""

import queue
import threading

import torch
from torch import nn


def produce(batches):
    for _ in range(2):
        inputs = torch.randn(8, 4)
        batches.put((inputs, inputs.sum(1, keepdim=True)))


def main():
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    batches = queue.Queue()
    threading.Thread(target=produce, args=(batches,), daemon=True).start()
    for step in range(10):
        inputs, target = batches.get()
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), target)
        loss.backward()
        optimizer.step()
        print(f"step {step}: {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
