"""What it costs to run on the emulated Gaudi: eager steps there, and on the device that computes for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.apart import apart
from benchmarks.contest import synchronized, take_turns
from benchmarks.report import Row, Table

LIMIT = {"cpu": 3.0, "cuda": 1.0}
"""How many times the time of the device underneath the emulation may take: the first model here, the last one on CUDA."""

_EMULATED = "on the emulated hpu"
_EAGER = "eager"


def measure(device: str, rounds: int) -> Table:
    """Steps per second, one thread; what is underneath and what is emulated take turns."""
    beneath = "cuda" if device == "cuda" else "cpu"
    models = ["tutorial", "CosmicTagger A21"] if beneath == "cuda" else ["tutorial"]
    rows, times, rates = [], {}, {}
    for model in models:
        # In processes of their own: torch has one accelerator, and the emulated one stays known until the end.
        with apart(
            "benchmarks.gaudi_emulation", [f"{model}, {_EAGER}", f"{model}, {_EMULATED}"], beneath
        ) as contenders:
            take_turns(contenders, rounds)
        plain, emulated = contenders
        times[model] = plain.median / emulated.median
        rates.update({each.name: each.rates for each in contenders})
        rows += [Row(each.name, each.median, "steps/s", each.median / plain.median) for each in contenders]
    last = models[-1]
    return Table(
        title=f"Emulated Gaudi over {beneath}, training steps",
        command=f"make bench DEVICE={beneath} ARGS='--only gaudi_emulation'",
        rows=rows,
        verdict=f"{last}: {times[last]:.2f} times the time of eager {beneath}; wanted: {LIMIT[beneath]:.1f} times at most.",
        details={"rates": rates},
    )


def contender(name: str, beneath: str) -> Callable[[], int]:
    """A round of training one of the models, emulated or not."""
    torch.set_num_threads(1)
    bridge: Any = SimpleNamespace(mark_step=lambda: None)
    device, is_emulated = beneath, name.endswith(_EMULATED)
    if is_emulated:
        os.environ["PILOTAGE_HPU_ON"] = beneath
        import habana_frameworks.torch.core as bridge  # type: ignore[no-redef]

        device = "hpu"
    torch.manual_seed(42)
    network, loss_of, steps = (_tutorial if name.startswith("tutorial") else _cosmictagger)(device)
    # Left to itself, torch takes lists of tensors at once on CUDA and one after the other on hpu.
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001, momentum=0.9, foreach=True)

    def run() -> int:
        for _ in range(steps):
            optimizer.zero_grad()
            loss_of().backward()
            bridge.mark_step()
            optimizer.step()
            bridge.mark_step()
        synchronized(device)
        return steps

    return run


def _tutorial(device: str) -> tuple[nn.Module, Callable[[], Tensor], int]:
    from examples.fashion_mnist.model import GarmentClassifier

    network = GarmentClassifier().train().to(device)
    images, labels = torch.randn(16, 1, 28, 28).to(device), torch.randint(0, 10, (16,)).to(device)
    return network, lambda: network(images, labels)[1], 100


def _cosmictagger(device: str) -> tuple[nn.Module, Callable[[], Tensor], int]:
    from benchmarks.cosmic_step import Plain

    network, images = Plain().to(device), torch.rand(4, 3, 640, 1024).to(device)
    return network, lambda: sum(plane.square().mean() for plane in network(images)), 10
