"""The cost of a step by batch size, model size and device iterations, compared with eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

import pilotage
from benchmarks.baselines import baselines
from benchmarks.comparison import Contender, alternate, repeated
from benchmarks.report import Row, Table

MOST_IMAGES = 3_200
"""Most images of the narrow model in a round; a call is never cut."""
MOST_STEPS = 50


@dataclass(frozen=True)
class Size:
    """One point: the width of the tutorial's classifier, the batch size, and the steps of a call."""

    width: int = 1
    batch: int = 16
    iterations: int = 50

    def __str__(self) -> str:
        return f"width {self.width}, batch {self.batch}, deviceIterations {self.iterations}"


POINTS = (
    *(Size(batch=batch) for batch in (1, 16, 64, 256)),
    *(Size(iterations=iterations) for iterations in (1, 10, 200)),
    *(Size(width=width) for width in (2, 4)),
)


class Classifier(nn.Module):
    """The tutorial's classifier with ``width`` times as many channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        maps = nn.Conv2d(1, 5 * width, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(5 * width, 12 * width, 5), nn.ReLU()
        scores = nn.Linear(12 * 81 * width, 100 * width), nn.ReLU(), nn.Linear(100 * width, 10)
        self.layers = nn.Sequential(*maps, nn.GroupNorm(3, 12 * width), nn.Flatten(), *scores)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """The loss."""
        return functional.cross_entropy(self.layers(images), labels)


def measure(device: str, rounds: int) -> Table:
    """Microseconds per step in the tier graph, and the ratio to eager PyTorch."""
    ours = [Contender(str(size), _ours(size, device)) for size in POINTS]
    eager = {
        size: Contender(f"eager PyTorch, {size}", _eager(size, device)) for size in POINTS if size.iterations == 50
    }
    alternate([*ours, *eager.values()], min(rounds, 5))
    rows = []
    for size, contender in zip(POINTS, ours, strict=True):
        baseline = eager.get(size, eager[Size()])
        rows.append(Row(contender.name, 1e6 / contender.median, "µs per step", contender.median / baseline.median))
    one, many = (1e6 / contender.median for contender in (ours[0], ours[3]))
    picture = (many - one) / (POINTS[3].batch - POINTS[0].batch)
    return Table(
        title=f"Cost of a step: tutorial classifier, tier graph, on {device}; ratios to eager PyTorch",
        command=f"make bench DEVICE={device} ARGS='--only step_cost'",
        rows=rows,
        verdict=f"A step takes about {one - picture:.0f} µs plus {picture:.2f} µs per image.",
        details={"rates": {each.name: each.rates for each in (*ours, *eager.values())}},
    )


def _steps(size: Size) -> int:
    return max(size.iterations, min(MOST_STEPS, MOST_IMAGES // (size.batch * size.width**2)))


def _data(size: Size, steps: int = 1) -> tuple[Tensor, Tensor]:
    return torch.randn(steps * size.batch, 1, 28, 28), torch.randint(0, 10, (steps * size.batch,))


def _ours(size: Size, device: str) -> Callable[[], int]:
    torch.manual_seed(0)
    model = Classifier(size.width)
    trainer = pilotage.training(
        model,
        torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9),
        device_iterations=size.iterations,
        backend=device,
        tier="graph",
    )
    data, calls = _data(size, size.iterations), max(1, _steps(size) // size.iterations)
    return repeated(lambda: trainer(*data), calls, device, steps=size.iterations)


def _eager(size: Size, device: str) -> Callable[[], int]:
    torch.manual_seed(0)
    fused = device == "cuda"
    ways = baselines(
        Classifier(size.width),
        _data(size),
        lambda parameters: torch.optim.SGD(parameters, lr=0.001, momentum=0.9, fused=fused),
        device,
        modes=(),
        loops=False,
    )
    (step,) = ways.values()
    return repeated(step, min(_steps(size), MOST_STEPS), device)
