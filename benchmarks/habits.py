"""Epochs of ordinary training scripts, one habit each: eager, with torch.compile, and as a program.

The three ways take turns within one process, so that a busy moment of the machine hits all of them.
`python -m tools.habit_table` makes a page of the results.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import statistics
import textwrap
import time
from collections.abc import Iterator
from itertools import chain, repeat
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

LOOP = re.compile(r"^for (_?epoch) in range\((\d+)\):\n", re.MULTILINE)
"""The loop over epochs, which continues for as long as it is measured."""

WARM_UP = 3
"""Epochs after those of the script itself in which everything is compiled."""

AT_A_TIME = 5
"""Epochs that are timed together: one takes a few milliseconds."""


def can_be_measured(habit: str) -> bool:
    """Whether a script is one loop that can continue: not one that stops by itself, or has its loop in a function."""
    text = (SCRIPTS / habit / "before.py").read_text()
    return LOOP.search(text) is not None and "model = " in text and not re.search(r"^ +break$", text, re.MULTILINE)


def source(habit: str, way: str) -> str:
    """The script as a generator that begins another epoch whenever it is asked for the next one."""
    text = (SCRIPTS / habit / ("after.py" if way == "pilotage" else "before.py")).read_text()
    # A schedule that knows the number of steps would refuse more of them.
    text = re.sub(r"total_steps=\d+", "total_steps=1_000_000", text)
    before = COMPILED if way == "torch.compile" else ""
    text = LOOP.sub(rf"{before}for \1 in endless(\2):\n    yield\n", text, count=1)
    return f"def script():\n{textwrap.indent(text, '    ')}"


def endless(count: int) -> Iterator[int]:
    """The numbers of a script's own epochs, then the last one again and again."""
    return chain(range(count), repeat(count - 1))


class Running:
    """A script that runs epoch by epoch."""

    def __init__(self, habit: str, way: str) -> None:
        names: dict[str, Any] = {"__name__": "__main__", "endless": endless}
        exec(compile(source(habit, way), f"{habit}-{way}", "exec"), names)
        self._epochs = names["script"]()
        own = re.search(LOOP, (SCRIPTS / habit / "before.py").read_text())
        self.run((0 if own is None else int(own[2])) + WARM_UP)
        self.is_compiled = counters["frames"]["ok"] > 0

    def run(self, epochs: int) -> float:
        """Milliseconds of an epoch."""
        began = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            for _ in range(epochs):
                next(self._epochs)
        return 1e3 * (time.perf_counter() - began) / epochs


def measured(habit: str, rounds: int) -> dict[str, Any]:
    """The times of an epoch in each way, in every round; without torch.compile where it fails, with what it says."""
    torch._dynamo.reset()
    counters["frames"].clear()
    running, refused = {}, None
    for way in WAYS:
        try:
            running[way] = Running(habit, way)
        except Exception as error:
            if way != "torch.compile":
                raise
            refused = str(error)
    times: dict[str, list[float]] = {way: [] for way in running}
    for _ in range(rounds):
        for way, script in running.items():
            times[way].append(script.run(AT_A_TIME))
    text = (SCRIPTS / habit / "before.py").read_text()
    return {
        "habit": habit,
        "about": ast.get_docstring(ast.parse(text)),
        "compiled": refused is None and running["torch.compile"].is_compiled,
        "refused": refused,
        "milliseconds": times,
    }


class Others:
    """How many cores other programs use."""

    def __init__(self) -> None:
        self._began = time.perf_counter(), self._busy(), self._own()

    def cores(self) -> float:
        """Their mean since this object was created."""
        began, busy, own = self._began
        return max(0.0, (self._busy() - busy) - (self._own() - own)) / (time.perf_counter() - began)

    def _busy(self) -> float:
        """Seconds that all cores have worked: everything but idle and waiting for disks."""
        counted = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        return (sum(map(int, counted)) - int(counted[3]) - int(counted[4])) / os.sysconf("SC_CLK_TCK")

    def _own(self) -> float:
        return sum(os.times()[:4])


def measure(device: str, rounds: int) -> Table:
    """Milliseconds of each script's epoch on the processor."""
    if device != "cpu":
        raise SystemExit("The scripts train on the processor: choose --device cpu.")
    os.environ["PILOTAGE_BACKEND"] = "cpu"
    # A script of a few seconds ends before compiled code is ready; without this, the switch could come in between.
    os.environ["PILOTAGE_TIER"] = "graph"
    # Processes that compile would count as other programs.
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    torch.set_num_threads(1)
    others = Others()
    habits = sorted(each.name for each in SCRIPTS.iterdir() if each.is_dir() and can_be_measured(each.name))
    found = [measured(habit, 3 * rounds) for habit in habits]
    rows = [row for each in found for row in rows_of(each)]
    faster = sum(
        min(map(_middle, each["milliseconds"].values())) == _middle(each["milliseconds"]["pilotage"]) for each in found
    )
    return Table(
        title="An epoch of ordinary scripts, compared with eager PyTorch",
        command=f"make bench DEVICE={device} ARGS='--only habits'",
        rows=rows,
        verdict=f"The program is the fastest of the three in {faster} of {len(habits)} scripts. The models are small: "
        "the table shows overheads, not kernels.",
        details={"scripts": found, "other_cores": others.cores(), "threads": 1},
    )


def rows_of(found: dict[str, Any]) -> list[Row]:
    """A row for each way."""
    eager = _middle(found["milliseconds"]["eager"])
    rows = []
    for way, times in found["milliseconds"].items():
        note = " (compiled nothing)" if way == "torch.compile" and not found["compiled"] else ""
        rows.append(Row(f"{found['habit']}, {way}{note}", _middle(times), "ms", eager / _middle(times)))
    return rows


def _middle(times: list[float]) -> float:
    return statistics.median(times)
