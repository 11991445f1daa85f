"""Gaudi scripts with PILOTAGE_HPU_ON=cuda, compared with the same scripts on CUDA in the same run.

CosmicTagger's A21, and the classifier of the vendor's MNIST example with its data loader: 64 pictures at a time, each
normalised by itself, as torchvision's transforms do. Only torch and numpy are needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from benchmarks.comparison import alternate, synchronized
from benchmarks.report import Row, Table
from benchmarks.separate_processes import in_processes

LIMITS = {"MNIST": 1.2, "CosmicTagger A21": 1.05}
"""The longest allowed time of a step, relative to the same script without emulation."""

_ROUNDS = {"MNIST": 7, "CosmicTagger A21": 5}
_EMULATED = "on hpu"


def measure(device: str, rounds: int) -> Table:
    """Steps per second of both programs, alternating between the device itself and the emulated card over it."""
    beneath = "cuda" if device == "cuda" else "cpu"
    rows, times, rates = [], {}, {}
    for program in LIMITS:
        # In separate processes: torch supports one accelerator, and the emulated one stays registered.
        names = [f"{program} on {beneath}", f"{program} {_EMULATED}"]
        with in_processes("benchmarks.gaudi_on_card", names, beneath) as contenders:
            alternate(contenders, min(rounds, _ROUNDS[program]))
        plain, emulated = contenders
        times[program] = plain.median / emulated.median
        rates.update({each.name: each.rates for each in contenders})
        rows += [Row(each.name, each.median, "steps/s", each.median / plain.median) for each in contenders]
    said = [
        f"{name} {times[name]:.3f} times (at most {limit}: {'met' if times[name] <= limit else 'MISSED'})"
        for name, limit in LIMITS.items()
    ]
    return Table(
        title=f"Gaudi scripts, emulated over {beneath}, relative to the same scripts on {beneath}",
        command=f"make bench DEVICE={beneath} ARGS='--only gaudi_on_card'",
        rows=rows,
        verdict=f"Time of a step: {'; '.join(said)}.",
        details={"times": times, "rates": rates},
    )


def contender(name: str, beneath: str) -> Callable[[], int]:
    """A round of one of the scripts, as its process runs it."""
    torch.set_num_threads(1)
    bridge: Any = SimpleNamespace(mark_step=lambda: None)
    device = beneath
    if name.endswith(_EMULATED):
        os.environ["PILOTAGE_HPU_ON"] = beneath
        import habana_frameworks.torch.core as bridge  # type: ignore[no-redef]

        device = "hpu"
    torch.manual_seed(42)
    steps = _mnist if name.startswith("MNIST") else _cosmictagger
    return steps(device, bridge, is_small=beneath == "cpu")


class Digits(Dataset[tuple[Tensor, int]]):
    """Generated digits as bytes, made into normalised tensors one by one."""

    def __init__(self, count: int) -> None:
        generator = np.random.default_rng(0)
        self.images = generator.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        self.labels = generator.integers(0, 10, count)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, number: int) -> tuple[Tensor, int]:
        image = torch.from_numpy(self.images[number])[None].to(torch.float32).div(255)
        return image.sub(0.1307).div(0.3081), int(self.labels[number])


class Network(nn.Module):
    """The classifier of PyTorch's and the vendor's MNIST example."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
        self.dropout1, self.dropout2 = nn.Dropout(0.25), nn.Dropout(0.5)
        self.fc1, self.fc2 = nn.Linear(9216, 128), nn.Linear(128, 10)

    def forward(self, images: Tensor) -> Tensor:
        hidden = functional.relu(self.conv2(functional.relu(self.conv1(images))))
        hidden = self.dropout1(functional.max_pool2d(hidden, 2)).flatten(1)
        return functional.log_softmax(self.fc2(self.dropout2(functional.relu(self.fc1(hidden)))), dim=1)


def _mnist(device: str, bridge: Any, *, is_small: bool) -> Callable[[], int]:
    network = Network().train().to(device)
    optimizer = torch.optim.Adadelta(network.parameters(), lr=1.0)
    data = Digits(640 if is_small else 6400)

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        for images, labels in DataLoader(data, batch_size=64, shuffle=True):
            yield images.to(device, non_blocking=True), labels.to(device, non_blocking=True)

    def run() -> int:
        steps = 0
        for images, labels in batches():
            optimizer.zero_grad(set_to_none=True)
            loss = functional.nll_loss(network(images), labels)
            loss.backward()
            bridge.mark_step()
            optimizer.step()
            bridge.mark_step()
            steps += 1
            if steps % 10 == 0:
                loss.item()  # logged, as in the example
        synchronized(device)
        return steps

    return run


def _cosmictagger(device: str, bridge: Any, *, is_small: bool) -> Callable[[], int]:
    from benchmarks.cosmic_step import Plain

    size, steps = ((1, 3, 64, 64), 1) if is_small else ((4, 3, 640, 1024), 5)
    network, images = Plain().to(device), torch.rand(size).to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001, momentum=0.9)

    def run() -> int:
        for _ in range(steps):
            optimizer.zero_grad()
            loss: Any = sum(plane.square().mean() for plane in network(images))
            loss.backward()
            bridge.mark_step()
            optimizer.step()
            bridge.mark_step()
        synchronized(device)
        return steps

    return run
