"""The cost of watching a script for `pilotage prove`: steps of the tutorial's classifier, watched and not.

The statistic, fixed before it was measured: the median, over pairs of runs, of the ratio of processor time for each
step. Processor time, because all of it is one thread, so that it equals wall time on an idle machine and counts little
of other programs; pairs that follow each other, because a machine is faster at times; all steps after the first tenth,
because writing belongs to the cost; the median, because no run is chosen. Quartiles show how sure it is. The ratio of
wall time and that of the fastest two hundred steps in a row, which was the statistic before, are printed beside it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import Row, Table
from pilotage.proof.running import watched_environment
from pilotage.proof.watching.settings import WatchSettings

ALLOWED = 0.05
"""The share of a step that watching may cost."""

STEPS = 1000
"""Of one run: the first tenth is not counted."""

WINDOW = 200

SCRIPT = Path(__file__).with_name("watched_classifier.py")


@dataclass(frozen=True, kw_only=True)
class Run:
    """Microseconds of a step in one run."""

    processor: float
    wall: float
    fastest: float
    """Processor time of the fastest window."""


def measure(device: str, rounds: int) -> Table:
    """Time of a step in eager PyTorch and as a program, each with and without watching."""
    rows, verdicts = [], []
    for mode in ("eager", "program"):
        pairs = [_pair(mode, device, watched_first=number % 2 == 1) for number in range(max(4, rounds))]
        plain, watched = (statistics.median(run.processor for run in runs) for runs in zip(*pairs, strict=True))
        shares = sorted(b.processor / a.processor - 1 for a, b in pairs)
        low, middle, high = statistics.quantiles(shares, n=4, method="inclusive")
        wall = statistics.median(b.wall / a.wall - 1 for a, b in pairs)
        fastest = min(b.fastest for _, b in pairs) / min(a.fastest for a, _ in pairs) - 1
        rows += [Row(f"{mode}, plain", plain, "µs"), Row(f"{mode}, watched", watched, "µs", watched / plain)]
        verdicts.append(
            f"{mode} {middle:+.1%} of processor time (quartiles {low:+.1%} and {high:+.1%}; "
            f"wall time {wall:+.1%}; fastest {WINDOW} steps {fastest:+.1%})"
        )
    return Table(
        title=f"A step of the tutorial's classifier, batch 16, with and without watching, on {device}",
        command=f"make bench DEVICE={device} ARGS='--only watching'",
        rows=rows,
        verdict=f"Watching costs, in the median of pairs: {'; '.join(verdicts)}. Allowed: {ALLOWED:.0%}.",
    )


def _pair(mode: str, device: str, *, watched_first: bool) -> tuple[Run, Run]:
    """A plain and a watched run, one directly after the other."""
    found = {watched: _run(mode, device, watched=watched) for watched in sorted((False, True), reverse=watched_first)}
    return found[False], found[True]


def _run(mode: str, device: str, *, watched: bool) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        settings = WatchSettings(folder=folder, steps=STEPS)
        environment = watched_environment(settings) if watched else dict(os.environ)
        command = [sys.executable, str(SCRIPT), mode, device, str(STEPS)]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    moments = json.loads(ran.stdout.splitlines()[-1])
    processor, wall = moments["processor"], moments["wall"]
    first, last = STEPS // 10, len(processor) - 1
    starts = range(first, last + 1 - WINDOW, WINDOW // 4)
    return Run(
        processor=1e6 * (processor[last] - processor[first]) / (last - first),
        wall=1e6 * (wall[last] - wall[first]) / (last - first),
        fastest=1e6 * min(processor[place + WINDOW] - processor[place] for place in starts) / WINDOW,
    )
