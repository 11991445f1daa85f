"""Training steps of CosmicTagger's A21, compared with a straightforward implementation of the same network."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from benchmarks.comparison import Contender, alternate
from benchmarks.report import Row, Table
from cosmictagger.configuration.choices import LossBalanceScheme, OptimizerKind, Precision
from cosmictagger.configuration.network import PRESETS
from cosmictagger.data.events import Batch
from cosmictagger.devices.card import prepare_card
from cosmictagger.devices.eager import EagerExecutor
from cosmictagger.devices.engine import EngineExecutor
from cosmictagger.devices.executor import Executor
from cosmictagger.networks.uresnet import build
from cosmictagger.training.optimizer import build_optimizer
from cosmictagger.training.precision import NUMBER_TYPES

SIZE = (640, 1024)
THREADS = 2
RATE = 3e-4
TARGET = {"cpu": 1.3, "cuda": 105 / 23.5}
MOST_ROUNDS = 5
"""A step of the plain network takes seconds on a CPU."""


def measure(device: str, rounds: int) -> Table:
    """Images per second of the plain network in float32 and of the device that a run would get."""
    images = 8 if device == "cuda" else 1
    precision = Precision.bfloat16 if device == "cuda" else Precision.float32
    threads = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    batch = pictures(images)
    ours = training_executor(device, precision, "a21")
    contenders = [
        Contender("plain eager, float32", _plain(batch, torch.device(device))),
        Contender(f"cosmictagger, {precision.name}", lambda: _step(ours, batch)),
    ]
    alternate(contenders, min(rounds, MOST_ROUNDS))
    torch.set_num_threads(threads)
    plain, fast = (each.median for each in contenders)
    return Table(
        title=f"A21, downsample 1, batch {images}, {device}",
        command="make bench ARGS='--only cosmic_step'",
        rows=[Row(each.name, each.median, "images/s", each.median / plain) for each in contenders],
        verdict=f"A step is {fast / plain:.2f} times as fast as plain eager; target: {TARGET[device]:.2f} times.",
        details={"threads": THREADS, "rates": {each.name: each.rates for each in contenders}},
    )


def pictures(images: int) -> Batch:
    """Random images with 2 % of their pixels filled."""
    generator = np.random.default_rng(0)
    shape = (images, 3, *SIZE)
    filled = generator.random(shape, dtype=np.float32) < 0.02
    label = filled.astype(np.uint8) * generator.integers(0, 3, shape).astype(np.uint8)
    charge = filled * generator.random(shape, dtype=np.float32) * 20
    entries = np.arange(images)
    return Batch(image=charge, label=label, entries=entries, event_ids=np.zeros((images, 3), np.int64))


def training_executor(device: str, precision: Precision, preset: str) -> Executor:
    """The device that a run would train this network on, with fixed initial weights."""
    if device == "cuda":
        prepare_card()
    torch.manual_seed(0)
    numbers, scheme = NUMBER_TYPES[precision], LossBalanceScheme.focal
    network = build(PRESETS[preset], numbers.activations)
    optimizer = build_optimizer(OptimizerKind.adam, network.parameters(), RATE)
    if device == "cpu":
        return EagerExecutor(network, optimizer, scheme, numbers, torch.device("cpu"))
    return EngineExecutor(network, optimizer, scheme, numbers, device)


def _step(executor: Executor, batch: Batch) -> int:
    executor.train([batch], RATE)
    return len(batch.entries)


def _plain(batch: Batch, device: torch.device):
    network = Plain().to(device)
    optimizer = torch.optim.Adam(network.parameters(), RATE)
    image, label = torch.from_numpy(batch.image).to(device), torch.from_numpy(batch.label).to(device).long()

    def step() -> int:
        optimizer.zero_grad()
        loss = sum(_focal(scores, plane) for scores, plane in zip(network(image), label.unbind(1), strict=True))
        loss.backward()
        optimizer.step()
        float(loss.detach())
        return len(image)

    return step


def _focal(scores: Tensor, label: Tensor) -> Tensor:
    entropy = F.cross_entropy(scores, label, reduction="none")
    with torch.no_grad():
        one_hot = F.one_hot(label, 3).permute(0, 3, 1, 2)
        weight = ((1 - scores.softmax(1)).square() * one_hot).mean(1)
    return (weight * entropy).sum() / weight.sum()


def _block(inputs: int, outputs: int, size: int = 3) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, size, padding=size // 2)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.LeakyReLU())


class Level(nn.Module):
    """One level of the U, one plane after another."""

    def __init__(self, depth: int, channels: int) -> None:
        super().__init__()
        self.depth = depth
        if depth == 0:
            middle = [_block(256, 256, 5) for _ in range(5)]
            self.deepest = nn.Sequential(_block(3 * channels, 256, 1), *middle, _block(256, 3 * channels, 1))
            return
        deeper = channels + 8
        self.down = nn.Sequential(_block(channels, channels), _block(channels, channels))
        self.smaller = nn.Sequential(nn.MaxPool2d(2), _block(channels, deeper, 1))
        self.below = Level(depth - 1, deeper)
        upsample = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.larger = nn.Sequential(upsample, _block(deeper, channels, 1))
        self.up = nn.Sequential(_block(channels, channels), _block(channels, channels))

    def forward(self, planes: list[Tensor]) -> list[Tensor]:
        if self.depth == 0:
            return list(self.deepest(torch.cat(planes, 1)).chunk(3, 1))
        below = self.below([self.smaller(self.down(plane)) for plane in planes])
        return [self.up(self.larger(small) + plane) for small, plane in zip(below, planes, strict=True)]


class Plain(nn.Module):
    """A21 as its description reads."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.core, self.head = _block(1, 8, 5), Level(6, 8), nn.Conv2d(8, 3, 1)

    def forward(self, image: Tensor) -> list[Tensor]:
        return [self.head(plane) for plane in self.core([self.stem(plane) for plane in image.chunk(3, 1)])]
