"""The last epoch of ordinary training scripts, one habit each: eager, with torch.compile, and as a program."""

from __future__ import annotations

import contextlib
import io
import os
import re
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
from torch._dynamo.utils import counters

from benchmarks.report import Row, Table

SCRIPTS = Path(__file__).parents[1] / "tests" / "door_habits" / "scripts"

WAYS = ("eager", "torch.compile", "pilotage")

COMPILED = "model.forward = torch.compile(model.forward)\n"
"""Not ``model.compile()``: for modules of torch itself, such as Sequential, that compiles nothing."""


class Epochs:
    """Counts epochs like ``range``, and notes when each begins."""

    def __init__(self) -> None:
        self.marks: list[float] = []

    def __call__(self, *limits: int) -> Iterator[int]:
        self.marks = []
        for number in range(*limits):
            self.marks.append(time.perf_counter())
            yield number
        self.marks.append(time.perf_counter())

    @property
    def last(self) -> float:
        """Milliseconds of the last epoch, when everything is compiled."""
        return 1e3 * (self.marks[-1] - self.marks[-2])


def source(habit: str, way: str) -> str:
    """The script of a habit in one of the ways."""
    text = (SCRIPTS / habit / ("after.py" if way == "pilotage" else "before.py")).read_text()
    before = COMPILED if way == "torch.compile" else ""
    return re.sub(r"^for (_?epoch) in range\(", rf"{before}for \1 in epochs_of(", text, count=1, flags=re.MULTILINE)


def last_epoch(habit: str, way: str) -> tuple[float, bool]:
    """Run a script once: the milliseconds of its last epoch, and whether torch.compile has compiled any of it."""
    epochs = Epochs()
    names: dict[str, Any] = {"__name__": "__main__", "epochs_of": epochs}
    torch._dynamo.reset()
    counters["frames"].clear()
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(source(habit, way), f"{habit}-{way}", "exec"), names)
    return epochs.last, counters["frames"]["ok"] > 0


def rows_of(habit: str, rounds: int) -> list[Row]:
    """The median of a few runs in each way."""
    rows: list[Row] = []
    for way in WAYS:
        times, compiled = zip(*(last_epoch(habit, way) for _ in range(rounds)), strict=True)
        found = statistics.median(times)
        note = " (compiled nothing)" if way == "torch.compile" and not all(compiled) else ""
        rows.append(Row(f"{habit}, {way}{note}", found, "ms", rows[0].value / found if rows else 1.0))
    return rows


def measure(device: str, rounds: int) -> Table:
    """Milliseconds of each script's last epoch on the processor."""
    if device != "cpu":
        raise SystemExit("The scripts train on the processor: choose --device cpu.")
    os.environ["PILOTAGE_BACKEND"] = "cpu"
    habits = sorted(each.name for each in SCRIPTS.iterdir() if each.is_dir())
    tables = [rows_of(habit, max(1, rounds // 3)) for habit in habits]
    faster = sum(own.value < min(eager.value, compiled.value) for eager, compiled, own in tables)
    return Table(
        title="The last epoch of ordinary scripts, compared with eager PyTorch",
        command=f"make bench DEVICE={device} ARGS='--only habits'",
        rows=[row for table in tables for row in table],
        verdict=f"The program is the fastest of the three in {faster} of {len(habits)} scripts. The models are small: "
        "the table shows overheads, not kernels.",
    )
