"""Run all benchmarks that need a card, one after the other, within a time limit.

python tools/measure_on_card.py [--minutes M] [--output FOLDER] [--earlier FOLDER] [--before FOLDER] [NAME ...]

Each benchmark is a separate process with its own time limit, so one that hangs or fails does not affect the others.
Benchmarks that do not fit into the time are listed at the end, for the next run. `models` and `compile_time` save what
they have after each model. With `--earlier FOLDER`, which has the results of a run that was cut, they measure the rest.

Compiled code goes into the folder of `--caches`, which a later start of the machine can use. `before` compares the
tutorial with the sources of an earlier commit:

    mkdir -p output/before && git archive COMMIT src dropins/src | tar -x -C output/before
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BEFORE = "before"
LIMITS = {
    "models": 590,
    BEFORE: 300,
    "device_loop": 240,
    "cosmic_card": 240,
    "instances": 120,
    "world_of_one": 150,
    "compile_time": 300,
    "epoch": 90,
    "first_step": 240,
    "memory": 180,
    "step_cost": 90,
    "large_models": 400,
    "loading": 120,
    "cosmic_modes": 200,
    "cosmic_precision": 300,
    "gaudi_emulation": 150,
}
"""Time limit of each in seconds; the important ones come first."""

TUTORIAL = ("device_loop_50_compiled", "device_loop_1_compiled")
"""What is compared with an earlier commit."""

READY_WITHIN = "300"
"""Seconds after which a contender of the models that still compiles is left out, unless BENCHMARK_LIMIT says more."""


def main() -> int:
    """Run the benchmarks; the status is 0 if all of them succeed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of {', '.join(LIMITS)} (default: all)")
    parser.add_argument("--minutes", type=float, default=25, help="time limit for all of them (25)")
    parser.add_argument("--output", type=Path, default=Path("output/card"), help="where the results go (output/card)")
    parser.add_argument(
        "--earlier", type=Path, help="folder with results of a run that was cut, to go on with the rest"
    )
    parser.add_argument("--caches", type=Path, default=Path("output/caches"), help="compiled code (output/caches)")
    parser.add_argument("--before", type=Path, help="folder with src and dropins/src of an earlier commit")
    parser.add_argument("--device", default="cuda", help="cpu tries whether the benchmarks run (cuda)")
    arguments = parser.parse_args()
    names = arguments.names or [name for name in LIMITS if name != BEFORE or arguments.before is not None]
    if unknown := [name for name in names if name not in LIMITS]:
        parser.error(f"unknown: {', '.join(unknown)}; choose from {', '.join(LIMITS)}")
    if BEFORE in names and arguments.before is None:
        parser.error(f"{BEFORE} needs --before FOLDER; the head of this file says how to fill it")
    end = time.monotonic() + 60 * arguments.minutes
    arguments.output.mkdir(parents=True, exist_ok=True)
    arguments.caches.mkdir(parents=True, exist_ok=True)
    left: list[str] = []
    for name in names:
        remaining = end - time.monotonic()
        if remaining < 20 or not _measure(name, min(LIMITS[name], remaining), arguments):
            left.append(name)
    if left:
        print(f"Not measured: {' '.join(left)}", file=sys.stderr)
    return 1 if left else 0


def _measure(name: str, seconds: float, arguments: argparse.Namespace) -> bool:
    results = (arguments.output / f"{name}.json").resolve()
    if arguments.earlier is not None and not results.exists() and (arguments.earlier / results.name).exists():
        shutil.copyfile(arguments.earlier / results.name, results)
    print(f"== {name}", flush=True)
    start = time.monotonic()
    # A new session, so that its processes end with it and do not disturb the next benchmark.
    process = subprocess.Popen(
        [*_command(name, arguments), "--json", str(results)],
        cwd=ROOT,
        env=environment(results, arguments.caches.resolve()),
        start_new_session=True,
    )
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        print(f"== {name} took longer than {seconds:.0f} s", flush=True)
        return False
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    print(f"== {name}: {time.monotonic() - start:.0f} s, status {process.returncode}", flush=True)
    return process.returncode == 0


def _command(name: str, arguments: argparse.Namespace) -> list[str]:
    if name != BEFORE:
        return [sys.executable, "-m", "benchmarks", "--device", arguments.device, "--only", name]
    contenders = [word for each in TUTORIAL for word in ("--only", each)]
    against = ["--against", str(arguments.before.resolve()), "--device", arguments.device]
    return [sys.executable, "-m", "benchmarks.regression", *against, *contenders]


def environment(results: Path, caches: Path) -> dict[str, str]:
    """The environment of a benchmark that writes this file of results."""
    paths = [str(ROOT / "src"), str(ROOT / "dropins" / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {
        "BENCHMARK_LIMIT": READY_WITHIN,
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONUNBUFFERED": "1",
        "BENCHMARK_RESULTS": str(results),
        "BENCHMARK_PROFILES": str(results.with_name("profiles.txt")),
        "BENCHMARK_COMPILED": str(caches / "compiled"),
        "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
        "TRITON_CACHE_DIR": str(caches / "triton"),
        "PILOTAGE_CACHE_DIR": str(caches / "pilotage"),
    }


if __name__ == "__main__":
    sys.exit(main())
