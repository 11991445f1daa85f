"""The cost of announcing a program to the monitor."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import torch
from torch import nn

import poptorch
from benchmarks.comparison import Contender, alternate
from benchmarks.report import Row, Table
from pilotage.events import StepsRun
from pilotage.monitoring.announcement import ProgramDescription
from pilotage.monitoring.announcer import Announcer

CALLS = 2000
ANNOUNCEMENTS = 200
NAME = "PILOTAGE_RUN_DIR"


def measure(device: str, rounds: int) -> Table:
    """Microseconds of a call with and without announcing, of counting a call, and of one announcement."""
    torch.set_num_threads(1)
    before = os.environ.get(NAME)
    try:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            return _measured(device, rounds, Path(folder) / "run")
    finally:
        os.environ.pop(NAME)
        if before is not None:
            os.environ[NAME] = before


def _measured(device: str, rounds: int, directory: Path) -> Table:
    os.environ[NAME] = "off"
    silent = _calls(device)
    os.environ[NAME] = str(directory)
    announced = _calls(device)
    event = StepsRun(device=device, tier="graph", micro_batches=1, updates=1, seconds=1e-4)
    contenders = [
        Contender("call, silent", silent),
        Contender("call, announced", announced),
        Contender("counting a call", _counting(Announcer(ProgramDescription(), lambda _: ""), event, CALLS)),
        Contender("announcing, once a second", _counting(_Hasty(), event, ANNOUNCEMENTS)),
    ]
    alternate(contenders, rounds)
    rows = [Row(each.name, 1e6 / each.median, "µs") for each in contenders]
    return Table(
        title=f"One call of a small model, with and without announcing it to the monitor, on {device}",
        command=f"make bench DEVICE={device} ARGS='--only monitoring'",
        rows=rows,
        verdict=f"Announcing costs {rows[1].value - rows[0].value:.1f} µs per call.",
    )


class _Hasty(Announcer):
    """Announces every call, as if calls were a second apart."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(ProgramDescription(), lambda _: "", self._later)

    def _later(self) -> float:
        self._now += 1.0
        return self._now


def _counting(announcer: Announcer, event: StepsRun, calls: int):
    def count() -> int:
        for _ in range(calls):
            announcer.note(event)
        return calls

    return count


def _calls(device: str):
    model = poptorch.inferenceModel(nn.Linear(4, 4), poptorch.Options().runOn(device).showCompilationProgressBar(False))
    inputs = torch.randn(4, 4)
    model(inputs)

    def call() -> int:
        for _ in range(CALLS):
            model(inputs)
        return CALLS

    return call
