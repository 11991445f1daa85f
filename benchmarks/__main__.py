"""Runs the benchmarks: ``python -m benchmarks [--device cpu|cuda] [--only NAME] [--rounds N] [--json FILE]``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from benchmarks import (
    call_overhead,
    cosmic_reading,
    cosmic_step,
    device_loop,
    epoch,
    first_step,
    large_models,
    memory,
    report,
    tutorial,
)
from pilotage.backends.registry import backends, choose

BENCHMARKS: dict[str, Callable[[str, int], report.Table]] = {
    "tutorial": tutorial.measure,
    "call_overhead": call_overhead.measure,
    "device_loop": device_loop.measure,
    "large_models": large_models.measure,
    "first_step": first_step.measure,
    "epoch": epoch.measure,
    "memory": memory.measure,
    "cosmic_reading": cosmic_reading.measure,
    "cosmic_step": cosmic_step.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Compare in one run, as ratios.")
    parser.add_argument("--device", choices=[each.name for each in backends()], help="default: the best one present")
    parser.add_argument("--only", choices=list(BENCHMARKS), action="append", help="may be given more than once")
    parser.add_argument("--rounds", type=int, default=7, help="rounds that each contender works (7)")
    parser.add_argument("--json", type=Path, default=Path("output/benchmarks.json"), help="where the results go")
    arguments = parser.parse_args()
    device = choose(arguments.device).backend.name
    tables = []
    for name in arguments.only or BENCHMARKS:
        tables.append(BENCHMARKS[name](device, arguments.rounds))
        print(tables[-1], end="\n\n", flush=True)
    report.save(tables, device, arguments.json)
    print(f"Machine: {report.machine(device)}\nResults: {arguments.json}")


if __name__ == "__main__":
    main()
