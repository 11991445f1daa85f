"""Time to the first step in a new process, with an empty cache and with a warm one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from benchmarks.report import Row, Table

_PROGRAM = """
import json, sys, time
import torch
device, name = sys.argv[1:]
if device == "cuda":
    torch.zeros(1, device="cuda")
import pilotage
if name == "tutorial":
    from examples.fashion_mnist.model import GarmentClassifier
    model = GarmentClassifier().train()
    batch = torch.randn(16, 1, 28, 28), torch.randint(0, 10, (16,))
else:
    from benchmarks.large_models import encoder
    model = encoder()
    batch = torch.randn(8, 128, 768), torch.randn(8, 128, 768)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
trainer = pilotage.training(model, optimizer, backend=device, **json.loads(sys.stdin.read()))
start = time.perf_counter()
trainer(*batch)
print(json.dumps([time.perf_counter() - start, trainer.record.latest_tier]))
"""

_TURNS = 2
"""Number of processes; the fastest counts."""


def measure(device: str, rounds: int) -> Table:
    """Seconds from calling the wrapped model to the end of its first step; the CUDA context exists before."""
    names = ("tutorial", "encoder, 12 layers")
    rows = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        filled = {name: os.path.join(folder, "filled", name) for name in names}
        empty = [{name: os.path.join(folder, f"empty {turn}", name) for name in names} for turn in range(_TURNS)]
        # The first process after the machine starts reads from disk what later ones find in memory.
        cold = {
            name: min(_first_step(device, name, {"cache_directory": turn[name]})[0] for turn in empty) for name in names
        }
        # Compiling is not timed here, so both compile in parallel.
        list(pool.map(lambda name: _compiled_first_step(device, name, filled[name]), names))
        for name in names:
            warm, tier = min(_compiled_first_step(device, name, filled[name]) for _ in range(_TURNS))
            rows += [Row(f"{name}, empty cache", cold[name], "s"), Row(f"{name}, warm cache, tier {tier}", warm, "s")]
    return Table(
        title=f"Time to the first finished step, on {device}",
        command=f"make bench DEVICE={device} ARGS='--only first_step'",
        rows=rows,
        verdict=f"The tutorial's first step: {rows[0].value:.2f} s, with a warm cache {rows[1].value:.2f} s.",
    )


def _compiled_first_step(device: str, name: str, cache: str) -> tuple[float, str]:
    return _first_step(device, name, {"cache_directory": cache, "tier": "compiled"})


def _first_step(device: str, name: str, options: dict[str, str]) -> tuple[float, str]:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, device, name],
        input=json.dumps(options),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    seconds, tier = json.loads(done.stdout.splitlines()[-1])
    return seconds, tier
