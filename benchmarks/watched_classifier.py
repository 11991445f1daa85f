"""Train the tutorial's classifier in one thread, and print the moments after each step, for `watching`."""

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
    mode, device, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    torch.manual_seed(42)
    torch.set_num_threads(1)
    dataset, _ = FashionMNIST.splits("generated", limit=BATCH * (steps + 1))
    model = GarmentClassifier().train()
    train = eager(model, device) if mode == "eager" else program(model, device)
    processor, wall = [], []
    for images, labels in DataLoader(dataset, batch_size=BATCH, shuffle=True, drop_last=True):
        train(images, labels)
        processor.append(time.process_time())
        wall.append(time.perf_counter())
    print(json.dumps({"processor": processor[:steps], "wall": wall[:steps]}))


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
