"""The cost of watching a script for `pilotage prove`: steps of the tutorial's classifier, watched and not."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.report import Row, Table
from pilotage.proof.running import watched_environment
from pilotage.proof.watching.settings import WatchSettings

STEPS = 1000
"""Of one run: the first tenth is not counted."""

WINDOW = 200

SCRIPT = Path(__file__).with_name("watched_classifier.py")


def measure(device: str, rounds: int) -> Table:
    """Processor time of a step in eager PyTorch and as a program, each with and without watching.

    All of it is in one thread, so that other programs of the machine count little.
    """
    rows, verdicts = [], []
    for mode in ("eager", "program"):
        times: dict[str, list[float]] = {"plain": [], "watched": []}
        for _ in range(rounds):
            # In turns, since other programs of the machine make it slower at times.
            for kind, found in times.items():
                found.append(_microseconds(mode, device, watched=kind == "watched"))
        plain, watched = (min(times[kind]) for kind in ("plain", "watched"))
        rows += [Row(f"{mode}, plain", plain, "µs"), Row(f"{mode}, watched", watched, "µs", watched / plain)]
        share = statistics.median(b / a for a, b in zip(times["plain"], times["watched"], strict=True)) - 1
        verdicts.append(f"{mode} {100 * (watched / plain - 1):+.1f} % (median of pairs {100 * share:+.1f} %)")
    return Table(
        title=f"A step of the tutorial's classifier, batch 16, with and without watching, on {device}",
        command=f"make bench DEVICE={device} ARGS='--only watching'",
        rows=rows,
        verdict=f"Watching costs: {', '.join(verdicts)}.",
    )


def _microseconds(mode: str, device: str, *, watched: bool) -> float:
    """The fastest two hundred steps in a row; one in ten is recorded with a digest of the weights."""
    with tempfile.TemporaryDirectory() as folder:
        settings = WatchSettings(folder=folder, steps=STEPS)
        environment = watched_environment(settings) if watched else dict(os.environ)
        command = [sys.executable, str(SCRIPT), mode, device, str(STEPS)]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    moments = json.loads(ran.stdout.splitlines()[-1])
    starts = range(STEPS // 10, len(moments) - WINDOW, WINDOW // 4)
    return 1e6 * min((moments[place + WINDOW] - moments[place]) / WINDOW for place in starts)
