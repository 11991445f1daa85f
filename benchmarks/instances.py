"""Two instances that train together: ours against PyTorch's DistributedDataParallel, in the same two processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import pilotage
from benchmarks.contest import Contender, synchronized, take_turns
from benchmarks.report import Row, Table
from examples.fashion_mnist.model import GarmentClassifier

INSTANCES = 2
STEPS = 200
BATCH = 16


def measure(device: str, rounds: int) -> Table:
    """Updates per second of both, each with a batch of its own in every instance."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder, "rates.json")
        poprun = [sys.executable, "-m", "pilotage", "run", f"--num-instances={INSTANCES}"]
        instance = [sys.executable, "-m", "benchmarks.instances", device, str(rounds), str(found)]
        subprocess.run([*poprun, *instance], check=True, env={**os.environ, "PILOTAGE_BACKEND": device})
        rates: dict[str, list[float]] = json.loads(found.read_text())
    medians = {name: sorted(each)[len(each) // 2] for name, each in rates.items()}
    best = max(rate for name, rate in medians.items() if name.startswith("DDP"))
    ours = medians["Pilotage"]
    return Table(
        title=f"Tutorial classifier, {INSTANCES} instances with batch {BATCH} each, SGD with momentum, on {device}",
        command=f"make bench DEVICE={device} ARGS='--only instances'",
        rows=[Row(name, rate, "updates/s", rate / best) for name, rate in medians.items()],
        verdict=f"{ours / best:.2f} times the better of the two settings of DistributedDataParallel.",
        details={"rates": rates},
    )


def _in_each_instance(device: str, rounds: int, found: Path) -> None:
    rank = int(os.environ["POPDIST_REPLICA_INDEX_OFFSET"])
    generator = torch.Generator().manual_seed(rank)
    images = torch.randn(BATCH, 1, 28, 28, generator=generator)
    labels = torch.randint(10, (BATCH,), generator=generator)
    # First, because it makes the group of processes that both use.
    ours = _ours(images, labels)
    ours()
    contenders = [
        Contender("DDP", _round(_parallel(images, labels, device), device)),
        Contender("DDP, static graph, bucket views", _round(_parallel(images, labels, device, static=True), device)),
        Contender("Pilotage", _round(ours, device)),
    ]
    take_turns(contenders, rounds)
    if dist.get_rank() == 0:
        found.write_text(json.dumps({each.name: each.rates for each in contenders}))


def _ours(images: Tensor, labels: Tensor) -> Callable[[], object]:
    torch.manual_seed(42)
    model = GarmentClassifier().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    step = pilotage.training(model, optimizer, distributed=True)
    return lambda: step(images, labels)


def _parallel(images: Tensor, labels: Tensor, device: str, static: bool = False) -> Callable[[], object]:
    torch.manual_seed(42)
    model: nn.Module = GarmentClassifier().train().to(device)
    parallel = DistributedDataParallel(model, static_graph=static, gradient_as_bucket_view=static)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.001, momentum=0.9, fused=True)

    def step() -> float:
        optimizer.zero_grad()
        _, loss = parallel(images.to(device), labels.to(device))
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def _round(step: Callable[[], object], device: str) -> Callable[[], int]:
    def run() -> int:
        dist.barrier()
        for _ in range(STEPS):
            step()
        synchronized(device)
        return STEPS

    return run


if __name__ == "__main__":
    _in_each_instance(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
