"""A pipeline of two processes: compiled stages, stages on the graph, and torch's own pipelining in eager PyTorch.

All of them run in the same two processes on the same model, micro-batches, optimizer and order (1F1B).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

import pilotage
from benchmarks.comparison import Contender, alternate, synchronized
from benchmarks.report import Row, Table

STAGES = 2
BATCH, MICRO_BATCHES = 16, 8
WIDTH, BLOCKS = 256, 6
"""Of one stage."""

UPDATES = 5
"""Of one round: few, so that disturbances affect all contenders equally."""

EAGER = "torch.distributed.pipelining, eager"
OURS = {"Pilotage, graph": "graph", "Pilotage, compiled": "compiled"}
"""Our ways of training, with their tiers."""


class Block(nn.Module):
    """A layer with as much work for each element as in a product."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Staged(nn.Module):
    """Blocks in two stages."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleList(nn.Sequential(*(Block() for _ in range(BLOCKS))) for _ in range(STAGES))

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        for number, stage in enumerate(self.stages):
            pilotage.enter_stage(number)
            x = stage(x)
        return nn.functional.mse_loss(x, target)


def measure(device: str, rounds: int) -> Table:
    """Updates per second of each way."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder, "rates.json")
        poprun = [sys.executable, "-m", "pilotage", "run", "--num-instances=1", f"--ipus-per-replica={STAGES}"]
        process = [sys.executable, "-m", "benchmarks.stages", device, str(4 * rounds), str(found)]
        subprocess.run([*poprun, *process], check=True, env={**os.environ, "PILOTAGE_BACKEND": device})
        rates: dict[str, list[float]] = json.loads(found.read_text())
    medians = {name: statistics.median(each) for name, each in rates.items()}
    graph, compiled = (medians[name] for name in OURS)
    return Table(
        title=f"A pipeline of {STAGES} processes, {MICRO_BATCHES} micro-batches of {BATCH}, AdamW, on {device}",
        command=f"make bench DEVICE={device} ARGS='--only stages'",
        rows=[Row(name, rate, "updates/s", rate / medians[EAGER]) for name, rate in medians.items()],
        verdict=f"Compiled stages make {compiled / graph:.2f} times the updates of stages on the graph.",
        details={"rates": rates},
    )


def _in_each_process(device: str, rounds: int, found: Path) -> None:
    stage = pilotage.world_here().stage or 0
    generator = torch.Generator().manual_seed(0)
    x, target = (torch.randn(BATCH * MICRO_BATCHES, WIDTH, generator=generator) for _ in range(2))
    # First, because it creates the process group that all use.
    ours = {name: _ours(x, target, tier) for name, tier in OURS.items()}
    for step in ours.values():
        step()
    steps = {EAGER: _eager(stage, x.to(device), target.to(device)), **ours}
    contenders = [Contender(name, _round(step, device)) for name, step in steps.items()]
    alternate(contenders, rounds)
    if stage == 0:
        found.write_text(json.dumps({each.name: each.rates for each in contenders}))


def _ours(x: Tensor, target: Tensor, tier: str) -> Callable[[], object]:
    torch.manual_seed(42)
    model = Staged().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    step = pilotage.training(model, optimizer, distributed=True, gradient_accumulation=MICRO_BATCHES, tier=tier)
    return lambda: step(x, target)


def _eager(stage: int, x: Tensor, target: Tensor) -> Callable[[], object]:
    torch.manual_seed(42)
    module = Staged().train().to(x.device).stages[stage]
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4, fused=True)
    there = PipelineStage(module, stage, STAGES, x.device)
    schedule = Schedule1F1B(there, MICRO_BATCHES, loss_fn=nn.functional.mse_loss)

    def step() -> None:
        optimizer.zero_grad()
        if stage == 0:
            schedule.step(x)
        else:
            schedule.step(target=target)
        optimizer.step()

    return step


def _round(step: Callable[[], object], device: str) -> Callable[[], int]:
    def run() -> int:
        dist.barrier()
        for _ in range(UPDATES):
            step()
        synchronized(device)
        return UPDATES

    return run


if __name__ == "__main__":
    _in_each_process(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
