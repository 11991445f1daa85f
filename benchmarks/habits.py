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

from benchmarks.report import Row, Table

SCRIPTS = Path(__file__).parents[1] / "tests" / "door_habits" / "scripts"

WAYS = ("eager", "torch.compile", "pilotage")


class Epochs:
    """Counts like ``range`` and notes when each round begins; the last ``range`` of a script counts its epochs."""

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
    if way != "torch.compile":
        return text
    return re.sub(r"^for (_?epoch) in", r"model.compile()\nfor \1 in", text, count=1, flags=re.MULTILINE)


def last_epoch(habit: str, way: str) -> float:
    """Run a script once and return the milliseconds of its last epoch."""
    epochs = Epochs()
    names: dict[str, Any] = {"__name__": "__main__", "range": epochs}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(source(habit, way), f"{habit}-{way}", "exec"), names)
    return epochs.last


def measure(device: str, rounds: int) -> Table:
    """Milliseconds of each script's last epoch on the processor, the median of a few runs."""
    if device != "cpu":
        raise SystemExit("The scripts train on the processor: choose --device cpu.")
    os.environ["PILOTAGE_BACKEND"] = "cpu"
    rows, faster = [], 0
    habits = sorted(each.name for each in SCRIPTS.iterdir() if each.is_dir())
    for habit in habits:
        found = {way: statistics.median(last_epoch(habit, way) for _ in range(max(1, rounds // 3))) for way in WAYS}
        rows += [Row(f"{habit}, {way}", found[way], "ms", found["eager"] / found[way]) for way in WAYS]
        faster += found["pilotage"] < min(found["eager"], found["torch.compile"])
    return Table(
        title="The last epoch of ordinary scripts, compared with eager PyTorch",
        command=f"make bench DEVICE={device} ARGS='--only habits'",
        rows=rows,
        verdict=f"The program is the fastest of the three in {faster} of {len(habits)} scripts. The models are small: "
        "the table shows overheads, not kernels.",
    )
