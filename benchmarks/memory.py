"""Memory of a card in the steady state of training, each way in its own process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from benchmarks.report import Row, Table

_ACCUMULATIONS = (1, 2, 8)
_PROGRAM = """
import sys
import torch
import pilotage
from benchmarks.large_models import encoder
way, accumulation = sys.argv[1], int(sys.argv[2])
torch.manual_seed(0)
model = encoder(6)
batch = torch.randn(8, 256, 768), torch.randn(8, 256, 768)
if way == "eager":
    model = model.cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    inputs = [tensor.cuda() for tensor in batch]
    def step():
        optimizer.zero_grad()
        for _ in range(accumulation):
            model(*inputs).backward()
        optimizer.step()
else:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    trainer = pilotage.training(model, optimizer, backend="cuda", tier=way, gradient_accumulation=accumulation)
    inputs = [tensor.repeat(accumulation, 1, 1) for tensor in batch]
    step = lambda: trainer(*inputs)
for _ in range(4):
    step()
torch.cuda.synchronize()
print(torch.cuda.memory_reserved())
"""


def measure(device: str, rounds: int) -> Table:
    """Bytes that each way keeps reserved, with and without gradient accumulation."""
    if device != "cuda":
        return Table(
            title="Memory of the card",
            command="make bench DEVICE=cuda ARGS='--only memory'",
            rows=[Row("not measured: this needs a CUDA card", 0.0, "MiB")],
            verdict="Not measured on this device.",
        )
    ways = [(way, count) for way in ("eager", "graph", "compiled") for count in _ACCUMULATIONS]
    with ThreadPoolExecutor() as pool:  # bytes are counted for each process: they may run side by side
        counts = {f"{way}, accumulation {count}": pool.submit(_reserved, way, count) for way, count in ways}
        found = {name: count.result() for name, count in counts.items()}
    eager = found["eager, accumulation 1"]
    return Table(
        title="Memory reserved on the card in steady state: encoder of 6 layers, batch 8 x 256, AdamW",
        command="make bench DEVICE=cuda ARGS='--only memory'",
        rows=[Row(name, value / 2**20, "MiB", eager / value) for name, value in found.items()],
        verdict="\n".join(
            f"Accumulation {count}: compiled code reserves {_ratio(found, count):.2f} times as much as eager PyTorch."
            for count in _ACCUMULATIONS
        ),
    )


def _reserved(way: str, accumulation: int) -> int:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", _PROGRAM, way, str(accumulation)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return int(json.loads(done.stdout.splitlines()[-1]))


def _ratio(found: dict[str, float], count: int) -> float:
    return found[f"compiled, accumulation {count}"] / found[f"eager, accumulation {count}"]
