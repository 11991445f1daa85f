"""Run all benchmarks that need a card, one after the other, within a time limit.

python tools/measure_on_card.py [--minutes M] [--output FOLDER] [NAME ...]

Each benchmark is a separate process with its own time limit, so one that hangs or fails does not affect the others.
Benchmarks that do not fit into the time are listed at the end, for the next run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMITS = {
    "device_loop": 240,
    "epoch": 90,
    "first_step": 240,
    "memory": 180,
    "step_cost": 90,
    "large_models": 400,
    "loading": 120,
    "cosmic_card": 240,
    "cosmic_modes": 200,
    "cosmic_precision": 300,
    "instances": 120,
    "gaudi_emulation": 150,
}
"""Time limit of each in seconds; the important ones come first."""


def main() -> int:
    """Run the benchmarks; the status is 0 if all of them succeed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of {', '.join(LIMITS)} (default: all)")
    parser.add_argument("--minutes", type=float, default=25, help="time limit for all of them (25)")
    parser.add_argument("--output", type=Path, default=Path("output/card"), help="where the results go (output/card)")
    arguments = parser.parse_args()
    names = arguments.names or list(LIMITS)
    if unknown := [name for name in names if name not in LIMITS]:
        parser.error(f"unknown: {', '.join(unknown)}; choose from {', '.join(LIMITS)}")
    end = time.monotonic() + 60 * arguments.minutes
    arguments.output.mkdir(parents=True, exist_ok=True)
    left: list[str] = []
    for name in names:
        remaining = end - time.monotonic()
        if remaining < 20 or not _measure(name, min(LIMITS[name], remaining), arguments.output):
            left.append(name)
    if left:
        print(f"Not measured: {' '.join(left)}", file=sys.stderr)
    return 1 if left else 0


def _measure(name: str, seconds: float, output: Path) -> bool:
    paths = [str(ROOT / "src"), str(ROOT / "dropins" / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    command = [sys.executable, "-m", "benchmarks", "--device", "cuda", "--only", name]
    print(f"== {name}", flush=True)
    start = time.monotonic()
    try:
        done = subprocess.run(
            [*command, "--json", str((output / f"{name}.json").resolve())],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONUNBUFFERED": "1"},
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        print(f"== {name} took longer than {seconds:.0f} s", flush=True)
        return False
    print(f"== {name}: {time.monotonic() - start:.0f} s, status {done.returncode}", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
