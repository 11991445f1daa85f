"""The tutorial's training loop, compared with eager PyTorch's loop at several thread counts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import torch
from torch.utils.data import DataLoader

import poptorch
from benchmarks.comparison import Contender, alternate
from benchmarks.report import Row, Table
from examples.datasets.fashion_mnist.dataset import FashionMNIST
from examples.fashion_mnist.model import GarmentClassifier

STEPS = 300
BATCH = 16


def measure(device: str, rounds: int) -> Table:
    """Steps per second of both loops, including the loader, and the ratio at eager's best thread count."""
    dataset, _ = FashionMNIST.splits()
    counts = sorted({1, len(os.sched_getaffinity(0))}) if device == "cpu" else [torch.get_num_threads()]
    contenders = [
        Contender(f"eager PyTorch, {threads} threads", _round(_eager_loop(dataset, device), threads))
        for threads in counts
    ]
    # Pilotage chooses its thread count itself.
    contenders.append(Contender("poptorch", _round(_captured_loop(dataset, device), counts[-1])))
    alternate(contenders, rounds)
    return _table(contenders, device)


def _table(contenders: list[Contender], device: str) -> Table:
    eager = max((each for each in contenders if each.name.startswith("eager")), key=lambda each: each.median)
    ours = max((each for each in contenders if each.name.startswith("poptorch")), key=lambda each: each.median)
    return Table(
        title=f"Tutorial classifier, batch {BATCH}, SGD with momentum, training loop with loader, on {device}",
        command=f"make bench DEVICE={device} ARGS='--only tutorial'",
        rows=[Row(each.name, each.median, "steps/s", each.median / eager.median) for each in contenders],
        verdict=f"Best to best: {ours.median / eager.median:.2f} times eager PyTorch.",
        details={"rates": {each.name: each.rates for each in contenders}},
    )


def _round(batches: Iterator[Callable[[], Any]], threads: int) -> Callable[[], int]:
    def run() -> int:
        torch.set_num_threads(threads)
        for step in islice(batches, STEPS):
            step()
        return STEPS

    return run


def _captured_loop(dataset: FashionMNIST, device: str) -> Iterator[Callable[[], Any]]:
    torch.manual_seed(42)
    model = GarmentClassifier().train()
    options = poptorch.Options().runOn(device).showCompilationProgressBar(False)
    loader = poptorch.DataLoader(options, dataset, batch_size=BATCH, shuffle=True)
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    trainer = poptorch.trainingModel(model, options, optimizer)
    while True:
        for images, labels in loader:
            yield lambda images=images, labels=labels: trainer(images, labels)


def _eager_loop(dataset: FashionMNIST, device: str) -> Iterator[Callable[[], Any]]:
    torch.manual_seed(42)
    model = GarmentClassifier().train().to(device)
    loader = DataLoader(dataset, batch_size=BATCH, shuffle=True, drop_last=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, fused=device == "cuda")

    def step(images: torch.Tensor, labels: torch.Tensor) -> None:
        optimizer.zero_grad()
        _, loss = model(images.to(device), labels.to(device))
        loss.backward()
        optimizer.step()

    while True:
        for images, labels in loader:
            yield lambda images=images, labels=labels: step(images, labels)
