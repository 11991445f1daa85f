"""Two instances that train together, compared with PyTorch's DistributedDataParallel in the same two processes.

Both have the same model, batches, optimizer, thread count and process group. DistributedDataParallel runs with several
settings and torch's fused optimizer, with and without `torch.compile`; the best one counts.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import pilotage
from benchmarks.comparison import Contender, alternate, synchronized
from benchmarks.report import Row, Table
from examples.fashion_mnist.model import GarmentClassifier

INSTANCES = 2
BATCH = 16
BATCHES = 32
"""Different batches, repeated: with a single one, the loss would soon be 0 and momentum a slow denormal number."""

WIDTH = 1024
OURS = {"Pilotage, graph": "graph", "Pilotage, compiled": "compiled"}
"""Our ways of training, with their tiers."""

COMPILED = ", torch.compile"
_VIEWS = {"static_graph": True, "gradient_as_bucket_view": True}
SETTINGS: dict[str, dict[str, Any]] = {
    "DDP": {},
    "DDP, static graph, bucket views": _VIEWS,
    "DDP, the same, buckets of 4 MB": {**_VIEWS, "bucket_cap_mb": 4},
    f"DDP{COMPILED}": {},
    f"DDP, bucket views{COMPILED}": {"gradient_as_bucket_view": True},
}
Batch = tuple[Tensor, Tensor]


class WideClassifier(nn.Module):
    """Linear layers of 11 MiB: much to exchange for little computation."""

    def __init__(self) -> None:
        super().__init__()
        widths = (28 * 28, WIDTH, WIDTH, WIDTH, 10)
        layers = [layer for pair in itertools.pairwise(widths) for layer in (nn.Linear(*pair), nn.ReLU())]
        self.layers = nn.Sequential(nn.Flatten(), *layers[:-1])
        self.loss = nn.CrossEntropyLoss()

    def forward(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.layers(images)
        return scores, self.loss(scores, labels)


MODELS: dict[str, tuple[type[nn.Module], int]] = {"tutorial": (GarmentClassifier, 50), "wide": (WideClassifier, 10)}
"""With the updates per round, which are few, so that disturbances affect all contenders equally."""


def measure(device: str, rounds: int) -> Table:
    """Updates per second of both, with different batches in each instance."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder, "rates.json")
        poprun = [sys.executable, "-m", "pilotage", "run", f"--num-instances={INSTANCES}"]
        instance = [sys.executable, "-m", "benchmarks.instances", device, str(4 * rounds), str(found)]
        subprocess.run([*poprun, *instance], check=True, env={**os.environ, "PILOTAGE_BACKEND": device})
        rates: dict[str, dict[str, list[float]]] = json.loads(found.read_text())
    rows, verdicts = [], []
    for model, of_contenders in rates.items():
        medians = {name: statistics.median(each) for name, each in of_contenders.items()}
        best = max(rate for name, rate in medians.items() if name not in OURS)
        ours = max(rate for name, rate in medians.items() if name in OURS)
        rows += [Row(f"{model}: {name}", rate, "updates/s", rate / best) for name, rate in medians.items()]
        verdicts.append(f"{ours / best:.2f} times ({model})")
    return Table(
        title=f"{INSTANCES} instances with batch {BATCH} each, SGD with momentum, on {device}",
        command=f"make bench DEVICE={device} ARGS='--only instances'",
        rows=rows,
        verdict=f"{' and '.join(verdicts)} the best setting of DistributedDataParallel.",
        details={"rates": rates},
    )


def _in_each_instance(device: str, rounds: int, found: Path) -> None:
    rates = {}
    for name, (model, updates) in MODELS.items():
        # First, because it creates the process group that both use.
        ours = {key: _ours(model, _batches(), tier) for key, tier in OURS.items()}
        for each in ours.values():
            each()
        steps = {
            key: _parallel(model, _batches(), device, settings, compiled=key.endswith(COMPILED))
            for key, settings in SETTINGS.items()
        }
        contenders = [Contender(key, _round(step, updates, device)) for key, step in {**steps, **ours}.items()]
        alternate(contenders, rounds)
        rates[name] = {each.name: each.rates for each in contenders}
    if dist.get_rank() == 0:
        found.write_text(json.dumps(rates))


def _batches() -> Iterator[Batch]:
    generator = torch.Generator().manual_seed(int(os.environ["POPDIST_REPLICA_INDEX_OFFSET"]))
    images = torch.randn(BATCHES, BATCH, 1, 28, 28, generator=generator)
    labels = torch.randint(10, (BATCHES, BATCH), generator=generator)
    return itertools.cycle(zip(images, labels, strict=True))


def _ours(kind: type[nn.Module], batches: Iterator[Batch], tier: str) -> Callable[[], object]:
    torch.manual_seed(42)
    model = kind().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    step = pilotage.training(model, optimizer, distributed=True, tier=tier)
    return lambda: step(*next(batches))


def _parallel(
    kind: type[nn.Module], batches: Iterator[Batch], device: str, settings: dict[str, Any], *, compiled: bool
) -> Callable[[], object]:
    torch.manual_seed(42)
    parallel: Any = DistributedDataParallel(kind().train().to(device), **settings)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.001, momentum=0.9, fused=True)
    if compiled:
        parallel = torch.compile(parallel, dynamic=False)

    def step() -> float:
        images, labels = next(batches)
        optimizer.zero_grad()
        _, loss = parallel(images.to(device), labels.to(device))
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def _round(step: Callable[[], object], updates: int, device: str) -> Callable[[], int]:
    def run() -> int:
        dist.barrier()
        for _ in range(updates):
            step()
        synchronized(device)
        return updates

    return run


if __name__ == "__main__":
    _in_each_instance(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
