"""Train the tutorial's classifier in one thread, in blocks of steps, and print what each took, for `watching`.

A block begins when a line arrives on standard input, and ends with a line on standard output.
"""

import json
import sys
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from examples.datasets.fashion_mnist.dataset import FashionMNIST
from examples.fashion_mnist.model import GarmentClassifier

BATCH = 16


def main() -> None:
    mode, device, steps, block = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    torch.manual_seed(42)
    torch.set_num_threads(1)
    dataset, _ = FashionMNIST.splits("generated", limit=BATCH * (steps + 1))
    model = GarmentClassifier().train()
    train = eager(model, device) if mode == "eager" else program(model, device)
    batches = iter(DataLoader(dataset, batch_size=BATCH, shuffle=True, drop_last=True))
    for _ in range(steps // block):
        sys.stdin.readline()
        processor, wall = time.process_time(), time.perf_counter()
        for _ in range(block):
            train(*next(batches))
        print(json.dumps([time.process_time() - processor, time.perf_counter() - wall]), flush=True)


def eager(model, device):
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)

    def step(images: torch.Tensor, labels: torch.Tensor) -> None:
        optimizer.zero_grad()
        _, loss = model(images.to(device), labels.to(device))
        loss.backward()
        optimizer.step()

    return step


def program(model, device):
    import poptorch

    options = poptorch.Options().runOn(device).showCompilationProgressBar(False)
    return poptorch.trainingModel(model, options, poptorch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9))


if __name__ == "__main__":
    main()
