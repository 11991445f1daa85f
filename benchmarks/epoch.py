"""One epoch over the real data set, including reshuffling and every copy to the device."""

from __future__ import annotations

import time

import torch

import pilotage
import poptorch
from benchmarks.device_loop import Tf32
from benchmarks.report import Row, Table
from examples.datasets.fashion_mnist.dataset import FashionMNIST
from examples.fashion_mnist.model import GarmentClassifier

BATCH = 16
ITERATIONS = 50


def measure(device: str, rounds: int) -> Table:
    """Seconds for an epoch of the tutorial, from host memory, with images as floats and as raw bytes."""
    rows = []
    with Tf32(True):
        for name, raw in (("floats", False), ("raw bytes, normalised on the device", True)):
            dataset, _ = FashionMNIST.splits(raw=raw)
            rows.append(Row(f"images as {name}", _epoch(dataset, device, raw, rounds), "s"))
    steps = len(dataset) // BATCH
    best = min(row.value for row in rows)
    return Table(
        title=f"One epoch of the tutorial: {steps} steps of {BATCH}, deviceIterations {ITERATIONS}, on {device}",
        command=f"make bench DEVICE={device} ARGS='--only epoch'",
        rows=rows,
        verdict=f"{best:.2f} s per epoch, {steps / best:,.0f} steps/s including everything.",
    )


def _epoch(dataset: FashionMNIST, device: str, raw: bool, rounds: int) -> float:
    torch.manual_seed(42)
    model = GarmentClassifier().train()
    whole = pilotage.Normalized(model) if raw else model
    options = poptorch.Options().deviceIterations(ITERATIONS).runOn(device, tier="compiled")
    options.showCompilationProgressBar(False)
    loader = poptorch.DataLoader(options, dataset, batch_size=BATCH, shuffle=True)
    trainer = poptorch.trainingModel(whole, options, poptorch.optim.SGD(whole.parameters(), lr=0.001, momentum=0.9))
    for call, (images, labels) in enumerate(loader):
        trainer(images, labels)
        if call == 3:
            break
    return min(_time_epoch(loader, trainer) for _ in range(min(rounds, 5)))


def _time_epoch(loader: poptorch.DataLoader, trainer: poptorch.PoplarExecutor) -> float:
    start = time.perf_counter()
    for images, labels in loader:
        trainer(images, labels)
    return time.perf_counter() - start
