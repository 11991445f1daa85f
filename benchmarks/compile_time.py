"""Seconds until a model first trains with compiled code: torch.compile and Pilotage, each alone and with empty caches.

torch.compile makes the first step wait; Pilotage trains on the graph meanwhile. `BENCHMARK_MODELS`, `BENCHMARK_TINY`
and `BENCHMARK_RESULTS` are as in the benchmark of models.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

import pilotage
from benchmarks.comparison import synchronized
from benchmarks.models import made
from benchmarks.report import Row, Table, save
from benchmarks.twelve import SUBJECTS
from benchmarks.twelve.results import details_of

_WAYS = ("torch.compile", "Pilotage")
_PATIENCE = 900.0
"""Seconds after which Pilotage counts as not compiled."""


def measure(device: str, rounds: int) -> Table:
    """The seconds of each model, and how they compare."""
    del rounds
    asked = [each.strip() for each in os.environ.get("BENCHMARK_MODELS", "GPT-2;ConvNeXt").split(";")]
    path = Path(os.environ["BENCHMARK_RESULTS"]) if os.environ.get("BENCHMARK_RESULTS") else None
    found: dict[str, dict[str, float]] = dict(details_of(path).get("seconds", {}))
    notes: list[str] = []
    for name, subject in SUBJECTS.items():
        if not name.startswith(tuple(asked)) or name in found:
            continue
        if subject.package is not None and importlib.util.find_spec(subject.package) is None:
            notes.append(f"{name}: not measured, {subject.package} is not installed.")
            continue
        found[name] = {way: _seconds(name, way, device) for way in _WAYS}
        if path is not None:
            save([_table(found, device, notes)], device, path)
    return _table(found, device, notes)


def _table(found: Mapping[str, Mapping[str, float]], device: str, notes: Sequence[str]) -> Table:
    return Table(
        title=f"Seconds until the first compiled step, on {device}",
        command=f"make bench DEVICE={device} ARGS='--only compile_time'",
        rows=[
            Row(f"{name}: {way}", taken, "s", taken / seconds["torch.compile"])
            for name, seconds in found.items()
            for way, taken in seconds.items()
        ],
        verdict="\n".join(
            [
                *notes,
                *(
                    f"{name}: {seconds['Pilotage'] / seconds['torch.compile']:.2f} times the time of torch.compile."
                    for name, seconds in found.items()
                ),
            ]
        ),
        details={"seconds": found},
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
