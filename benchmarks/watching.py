"""The cost of watching a script for `pilotage prove`: steps of the tutorial's classifier, watched and not.

The statistic, fixed before it was measured: the median, over pairs of runs, of the ratio of processor time for each
step. Processor time, because all of it is one thread, so that it equals wall time on an idle machine and counts little
of other programs; all steps after the first tenth, because writing belongs to the cost; the median, because no run is
chosen. The two runs of a pair take turns every twenty steps, and who begins changes: a machine is faster at times, and
on a busy one two runs that follow each other differ by more than watching costs. Quartiles show how sure it is. The
ratio of wall time is printed beside it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import Row, Table
from pilotage.proof.running import watched_environment
from pilotage.proof.watching.settings import WatchSettings

ALLOWED = 0.05
"""The share of a step that watching may cost."""

STEPS = 1000
"""Of one run: the first tenth is not counted."""

BLOCK = 20
"""How many steps a run makes in its turn; weights are digested and events written at every tenth."""

SCRIPT = Path(__file__).with_name("watched_classifier.py")


@dataclass(frozen=True, kw_only=True)
class Run:
    """Microseconds of a step in one run."""

    processor: float
    wall: float


def measure(device: str, rounds: int) -> Table:
    """Time of a step in eager PyTorch and as a program, each with and without watching."""
    rows, verdicts = [], []
    for mode in ("eager", "program"):
        pairs = [_pair(mode, device, watched_first=number % 2 == 1) for number in range(max(4, rounds))]
        plain, watched = (statistics.median(run.processor for run in runs) for runs in zip(*pairs, strict=True))
        shares = sorted(b.processor / a.processor - 1 for a, b in pairs)
        low, middle, high = statistics.quantiles(shares, n=4, method="inclusive")
        wall = statistics.median(b.wall / a.wall - 1 for a, b in pairs)
        rows += [Row(f"{mode}, plain", plain, "µs"), Row(f"{mode}, watched", watched, "µs", watched / plain)]
        verdicts.append(
            f"{mode} {middle:+.1%} of processor time (quartiles {low:+.1%} and {high:+.1%}; wall time {wall:+.1%})"
        )
    return Table(
        title=f"A step of the tutorial's classifier, batch 16, with and without watching, on {device}",
        command=f"make bench DEVICE={device} ARGS='--only watching'",
        rows=rows,
        verdict=f"Watching costs, in the median of pairs: {'; '.join(verdicts)}. Allowed: {ALLOWED:.0%}.",
    )


def _pair(mode: str, device: str, *, watched_first: bool) -> tuple[Run, Run]:
    """A plain and a watched run that take turns."""
    blocks: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        environment = watched_environment(WatchSettings(folder=folder, steps=STEPS))
        runs = {
            watched: stack.enter_context(_started(mode, device, environment if watched else dict(os.environ)))
            for watched in (False, True)
        }
        for number in range(STEPS // BLOCK):
            for watched in sorted(runs, reverse=watched_first ^ (number % 2 == 1)):
                blocks[watched].append(_turn(runs[watched]))
    return _run(blocks[False]), _run(blocks[True])


def _started(mode: str, device: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), mode, device, str(STEPS), str(BLOCK)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)


def _turn(run: subprocess.Popen[str]) -> tuple[float, float]:
    """Seconds of processor and wall time of the next block."""
    assert run.stdin is not None
    assert run.stdout is not None
    run.stdin.write("\n")
    run.stdin.flush()
    processor, wall = json.loads(run.stdout.readline())
    return float(processor), float(wall)


def _run(blocks: list[tuple[float, float]]) -> Run:
    counted = blocks[len(blocks) // 10 :]
    processor, wall = (1e6 * sum(times) / (len(counted) * BLOCK) for times in zip(*counted, strict=True))
    return Run(processor=processor, wall=wall)
