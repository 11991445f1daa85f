"""The cost of emulating a Gaudi: eager steps on the emulated card and on the device that computes for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.comparison import alternate, synchronized
from benchmarks.report import Row, Table
from benchmarks.separate_processes import in_processes

LIMIT = {"cpu": 3.0, "cuda": 1.0}
"""Largest allowed slowdown: of the first model on the CPU, of the last one on CUDA."""

_EMULATED = "on the emulated hpu"
_EAGER = "eager"


def measure(device: str, rounds: int) -> Table:
    """Steps per second in one thread, alternating between the plain and the emulated device."""
    beneath = "cuda" if device == "cuda" else "cpu"
    models = ["tutorial", "CosmicTagger A21"] if beneath == "cuda" else ["tutorial"]
    rows, times, rates = [], {}, {}
    for model in models:
        # In separate processes: torch supports one accelerator, and the emulated one stays registered.
        with in_processes(
            "benchmarks.gaudi_emulation", [f"{model}, {_EAGER}", f"{model}, {_EMULATED}"], beneath
        ) as contenders:
            alternate(contenders, rounds)
        plain, emulated = contenders
        times[model] = plain.median / emulated.median
        rates.update({each.name: each.rates for each in contenders})
        rows += [Row(each.name, each.median, "steps/s", each.median / plain.median) for each in contenders]
    last = models[-1]
    return Table(
        title=f"Emulated Gaudi over {beneath}, training steps",
        command=f"make bench DEVICE={beneath} ARGS='--only gaudi_emulation'",
        rows=rows,
        verdict=f"{last}: {times[last]:.2f} times as long as eager {beneath}; at most {LIMIT[beneath]:.1f} wanted.",
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
    # By default torch processes lists of tensors at once on CUDA and one by one on hpu.
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
