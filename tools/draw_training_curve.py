"""Draw docs/images/training-curve.png: one epoch of the tutorial in eager PyTorch and in Pilotage, from the same seed.

python -m tools.draw_training_curve [FOLDER OF FASHION-MNIST]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn

import pilotage
from examples.datasets.fashion_mnist.dataset import FashionMNIST

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples/fashion_mnist"))

from model import GarmentClassifier  # noqa: E402

BATCH, SHOWN = 16, 75
"""Images in a step, and steps in a point of the curve."""

Step = Callable[[Tensor, Tensor], Tensor]


def main() -> None:
    """Train twice, compare the weights, and write the image."""
    torch.set_num_threads(1)
    dataset, _ = FashionMNIST.splits(sys.argv[1] if len(sys.argv) > 1 else None)
    eager_model, eager = trained(dataset, eager_step)
    model, curve = trained(dataset, pilotage_step)
    equal = all(torch.equal(a, b) for a, b in zip(eager_model.parameters(), model.parameters(), strict=True))
    largest = (eager - curve).abs().max()
    print(f"{len(eager)} steps; every weight is equal: {equal}; largest difference of a loss: {largest:.2e}")
    draw(eager, curve)


def trained(dataset: FashionMNIST, prepare: Callable[[nn.Module], Step]) -> tuple[nn.Module, Tensor]:
    """The model after one epoch, and the loss of each step."""
    torch.manual_seed(42)
    model = GarmentClassifier()
    order = torch.randperm(len(dataset)).split(BATCH)
    step = prepare(model)
    return model, torch.stack([step(dataset.images[chosen], dataset.labels[chosen]) for chosen in order])


def eager_step(model: nn.Module) -> Step:
    """The ordinary five lines."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)

    def step(images: Tensor, labels: Tensor) -> Tensor:
        optimizer.zero_grad()
        _, loss = model(images, labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def pilotage_step(model: nn.Module) -> Step:
    """The same as one program."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    program = pilotage.training(model, optimizer, backend="cpu", tier="graph")
    return lambda images, labels: program(images, labels)[1].squeeze()


def draw(eager: Tensor, curve: Tensor) -> None:
    """Both curves, as means over a few steps."""
    points = [each[: len(each) // SHOWN * SHOWN].reshape(-1, SHOWN).mean(1) for each in (eager, curve)]
    steps = SHOWN * (torch.arange(len(points[0])) + 1)
    figure, axes = plt.subplots(figsize=(7.2, 2.9), layout="constrained")
    axes.plot(steps, points[0], color="#b9cfd4", linewidth=7, solid_capstyle="round", label="eager PyTorch")
    axes.plot(steps, points[1], color="#b5541c", linewidth=1.6, label="Pilotage")
    axes.set(xlabel="step", ylabel="loss", xlim=(0, len(eager)), ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    target = ROOT / "docs/images/training-curve.png"
    figure.savefig(target, dpi=130)
    print(target)


if __name__ == "__main__":
    main()
