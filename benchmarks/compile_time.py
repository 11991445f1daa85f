"""Seconds until a model first trains with compiled code: torch.compile and Pilotage, each alone and with empty caches.

torch.compile makes the first step wait; Pilotage trains on the graph meanwhile. `BENCHMARK_MODELS` and `BENCHMARK_TINY`
are as in the benchmark of models.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time

import torch

import pilotage
from benchmarks.comparison import synchronized
from benchmarks.models import made
from benchmarks.report import Row, Table
from benchmarks.twelve import SUBJECTS

_WAYS = ("torch.compile", "Pilotage")
_PATIENCE = 900.0
"""Seconds after which Pilotage counts as not compiled."""


def measure(device: str, rounds: int) -> Table:
    """The seconds of each model, and how they compare."""
    del rounds
    asked = [each.strip() for each in os.environ.get("BENCHMARK_MODELS", "GPT-2;ConvNeXt").split(";")]
    rows: list[Row] = []
    verdicts: list[str] = []
    for name, subject in SUBJECTS.items():
        if not name.startswith(tuple(asked)):
            continue
        if subject.package is not None and importlib.util.find_spec(subject.package) is None:
            verdicts.append(f"{name}: not measured, {subject.package} is not installed.")
            continue
        seconds = {way: _seconds(name, way, device) for way in _WAYS}
        ratio = seconds["Pilotage"] / seconds["torch.compile"]
        rows += [Row(f"{name}: {way}", found, "s", found / seconds["torch.compile"]) for way, found in seconds.items()]
        verdicts.append(f"{name}: {ratio:.2f} times the time of torch.compile.")
    return Table(
        title=f"Seconds until the first compiled step, on {device}",
        command=f"make bench DEVICE={device} ARGS='--only compile_time'",
        rows=rows,
        verdict="\n".join(verdicts),
    )


def _seconds(name: str, way: str, device: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "TORCHINDUCTOR_CACHE_DIR": folder,
            "TRITON_CACHE_DIR": os.path.join(folder, "triton"),
        }
        command = [sys.executable, "-m", "benchmarks.compile_time", name, way, device, folder]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1]))


def _train(name: str, way: str, device: str, folder: str) -> float:
    """Seconds from the first call to the end of the first compiled step."""
    torch.manual_seed(0)
    subject = SUBJECTS[name]
    model, batch = made(subject, device, for_peers=way != "Pilotage")
    batch = tuple(each.to(device) for each in batch)
    if way == "Pilotage":
        trainer = pilotage.training(
            model, subject.optimizer(model.parameters()), backend=device, cache_directory=folder, check="off"
        )
        start = time.perf_counter()
        while trainer.record.latest_tier != "compiled":
            trainer(*batch)
            if time.perf_counter() - start > _PATIENCE:
                return float("inf")
        return time.perf_counter() - start
    model.to(device)
    optimizer = subject.optimizer(model.parameters(), fused=device == "cuda")
    compiled = torch.compile(model, dynamic=False)
    synchronized(device)
    start = time.perf_counter()
    compiled(*batch).backward()
    optimizer.step()
    synchronized(device)
    return time.perf_counter() - start


if __name__ == "__main__":
    print(json.dumps(_train(*sys.argv[1:])))
