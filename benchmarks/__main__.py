"""Runs the benchmarks: ``python -m benchmarks [--device cpu|cuda] [--only NAME] [--rounds N] [--json FILE]``."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from benchmarks import report
from pilotage.devices.registry import backends, choose

BENCHMARKS = (
    "tutorial",
    "call_overhead",
    "habits",
    "monitoring",
    "watching",
    "busy_machine",
    "device_loop",
    "large_models",
    "models",
    "first_step",
    "compile_time",
    "arrival_check",
    "epoch",
    "memory",
    "step_cost",
    "offloading",
    "loading",
    "instances",
    "stages",
    "world_of_one",
    "cosmic_reading",
    "cosmic_step",
    "cosmic_card",
    "cosmic_modes",
    "cosmic_precision",
    "cosmic_frameworks",
    "gaudi_emulation",
    "gaudi_on_card",
)
"""Modules with a function ``measure``; each is imported only if it runs, so missing packages affect no other one."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Compare Pilotage with alternatives in one run."
    )
    parser.add_argument("--device", choices=[*backends()], help="default: the best one present")
    parser.add_argument("--only", choices=BENCHMARKS, action="append", help="can be repeated")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each contender (7)")
    parser.add_argument("--json", type=Path, default=Path("output/benchmarks.json"), help="file for the results")
    arguments = parser.parse_args()
    device = choose(arguments.device).capabilities.name
    tables = []
    for name in arguments.only or BENCHMARKS:
        tables.append(importlib.import_module(f"benchmarks.{name}").measure(device, arguments.rounds))
        print(tables[-1], end="\n\n", flush=True)
    report.save(tables, device, arguments.json)
    print(f"Machine: {report.machine(device)}\nResults: {arguments.json}")


if __name__ == "__main__":
    main()
