"""A loop with data transformed in Python, sample by sample, compared with the same loop over ready tensors."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import numpy
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset

import poptorch
from benchmarks.comparison import Contender, alternate
from benchmarks.report import Row, Table
from examples.datasets.fashion_mnist.dataset import FashionMNIST

BATCH = 64
ITERATIONS = 10
CALLS = 25


class Augmented(Dataset[tuple[Tensor, Tensor]]):
    """Images that are shifted by up to two pixels, mirrored half of the time and normalised, one by one."""

    def __init__(self, pictures: FashionMNIST) -> None:
        self._images = pictures.images.numpy()
        self._labels = pictures.labels

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        down, right, mirror = numpy.random.randint(-2, 3), numpy.random.randint(-2, 3), numpy.random.rand() < 0.5
        picture = numpy.roll(self._images[index, 0], (down, right), (0, 1))
        if mirror:
            picture = picture[:, ::-1]
        normal = (picture.astype(numpy.float32) / 255 - 0.5) / 0.5
        return torch.from_numpy(numpy.ascontiguousarray(normal)).unsqueeze(0), self._labels[index]


class Network(nn.Module):
    """Five convolutions of 128 channels: about a millisecond per step on a card."""

    def __init__(self) -> None:
        super().__init__()
        widths = (1, 128, 128, 128, 128, 128)
        layers: list[nn.Module] = []
        for before, after in itertools.pairwise(widths):
            layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(2048, 10))

    def forward(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Scores and loss."""
        scores = self.layers(images)
        return scores, functional.cross_entropy(scores, labels)


def measure(device: str, rounds: int) -> Table:
    """Steps per second of both loops."""
    pictures, _ = FashionMNIST.splits(raw=True)
    workers = max(1, len(os.sched_getaffinity(0)) - 2)
    loader = poptorch.DataLoader(
        _options(device),
        Augmented(pictures),
        batch_size=BATCH,
        shuffle=True,
        num_workers=workers,
        mode=poptorch.DataLoaderMode.Async,
    )
    batch = next(iter(loader))
    contenders = [
        Contender("ready tensors", _loop(device, itertools.repeat(batch))),
        Contender(f"Python transforms, {workers} workers, asynchronous", _loop(device, _epochs(loader))),
    ]
    alternate(contenders, rounds)
    ready, loaded = (each.median for each in contenders)
    loader.terminate()
    return Table(
        title=f"Loading: five convolutions of 128 channels, batch {BATCH}, deviceIterations {ITERATIONS}, on {device}",
        command=f"make bench DEVICE={device} ARGS='--only loading'",
        rows=[Row(each.name, each.median, "steps/s", each.median / ready) for each in contenders],
        verdict=f"The loop with its loader runs at {loaded / ready:.1%} of the loop over ready tensors.",
    )


def _options(device: str) -> poptorch.Options:
    options = poptorch.Options().deviceIterations(ITERATIONS).runOn(device)
    return options.showCompilationProgressBar(False)


def _epochs(loader: poptorch.DataLoader) -> Iterator[list[Tensor]]:
    while True:
        yield from loader


def _loop(device: str, batches: Iterator[list[Tensor]]) -> Callable[[], int]:
    torch.manual_seed(0)
    model = Network().train()
    trainer = poptorch.trainingModel(model, _options(device), poptorch.optim.SGD(model.parameters(), lr=0.01))
    calls = CALLS if device == "cuda" else 1

    def run() -> int:
        for images, labels in itertools.islice(batches, calls):
            trainer(images, labels)
        return calls * ITERATIONS

    return run
