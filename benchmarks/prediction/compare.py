"""Predicted beside measured: peak memory and step time of training programs on one card.

    python -m benchmarks.prediction.compare --device cuda --json measured.json      # measures and predicts
    python -m benchmarks.prediction.compare --measured measured.json                # predicts, and compares with a file

The peak is `torch.cuda.max_memory_allocated` from the second call on. In the first one cuDNN tries algorithms, with
workspaces as large as free memory allows; its peak is printed too. The step time is the median of later calls with
inputs that lie on the card.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import time
import traceback
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

import pilotage
from benchmarks.prediction.operations.calibration import machine_of
from benchmarks.prediction.programs import TrainingProgram, programs

Row = dict[str, Any]
CALLS = 8


def main() -> None:
    """Measure the programs or read measurements, predict each, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="where to measure")
    parser.add_argument("--model", default="h200", help="the device model to predict with")
    parser.add_argument(
        "--json", type=Path, help="write the measurements to a file; what is in it already is not measured again"
    )
    parser.add_argument("--measured", type=Path, help="do not measure: read this file")
    parser.add_argument("--only", default="", help="a regular expression for the names of programs")
    parser.add_argument("--tiny", action="store_true", help="tiny programs, to try the script without a card")
    parser.add_argument("--markdown", action="store_true", help="print the rows as the table of docs/predicting.md")
    parser.add_argument("--seconds", type=float, default=380.0, help="measure no further program after this time")
    arguments = parser.parse_args()
    if arguments.measured is not None:
        measured = json.loads(arguments.measured.read_text())
        rows = {row["name"]: row for row in measured["programs"]}
        chosen = [each for each in _chosen(arguments) if each.name in rows]
        _show(chosen, (rows[each.name] for each in chosen), arguments, measured["machine"])
        return
    _show(_chosen(arguments), _measured(arguments), arguments, machine_of(arguments.device))


def _chosen(arguments: argparse.Namespace) -> list[TrainingProgram]:
    return [each for each in programs(tiny=arguments.tiny) if re.search(arguments.only, each.name)]


def _measured(arguments: argparse.Namespace) -> Iterator[Row]:
    begin, rows = time.perf_counter(), []
    known = _known(arguments.json)
    for program in _chosen(arguments):
        if program.name in known:
            row = known[program.name]
        elif time.perf_counter() - begin > arguments.seconds:
            row = {"name": program.name, "error": f"left out after {arguments.seconds:.0f} s"}
        else:
            row = measure(program, arguments.device, 4 if arguments.tiny else CALLS)
        rows.append(row)
        if arguments.json is not None:
            found = {"machine": machine_of(arguments.device), "programs": rows}
            arguments.json.write_text(json.dumps(found, indent=1))
        yield row


def _known(path: Path | None) -> dict[str, Row]:
    """The programs that an earlier run measured into the same file."""
    if path is None or not path.exists():
        return {}
    return {row["name"]: row for row in json.loads(path.read_text())["programs"] if "error" not in row}


def measure(program: TrainingProgram, device: str, calls: int = CALLS) -> Row:
    """Run a few calls of a program on a device."""
    row: Row = {"name": program.name, "options": program.options}
    begin = time.perf_counter()
    try:
        torch.manual_seed(0)
        row |= _calls(program, device, calls)
    except Exception as error:  # one program that fails must not end the others
        row["error"] = f"{type(error).__name__}: {error}"[:500]
        row["traceback"] = traceback.format_exc()[-2000:]
    row["seconds_in_all"] = time.perf_counter() - begin
    gc.collect()
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    return row


def _calls(program: TrainingProgram, device: str, calls: int) -> Row:
    module, micro_batch, optimizer = program.make()
    inputs = program.inputs(micro_batch)
    memory = _Memory(device)
    trainer = pilotage.training(module, optimizer, backend=device, tier="graph", check="off", **program.options)
    with torch.autocast(device, torch.bfloat16) if program.autocast else nullcontext():
        row: Row = {"parameters": sum(each.numel() for each in module.parameters())}
        trainer.compile(*inputs)
        row["allocated_after_compile"] = memory.allocated()
        times, peaks = [], []
        for _ in range(calls):
            memory.reset()
            begin = time.perf_counter()
            trainer(*inputs)
            times.append(time.perf_counter() - begin)
            peaks.append(memory.peak())
        row |= {"calls": times, "peaks": peaks, "reserved": memory.reserved(), "allocated": memory.allocated()}
        if device == "cuda":
            there = [tensor.to(device) for tensor in inputs]
            row["calls_on_card"] = [_timed(lambda: trainer(*there)) for _ in range(calls)]
            row["kernels"] = _kernels(lambda: trainer(*there))
    trainer.destroy()
    steady = sorted(times[3:])
    row |= {
        "peak": max(peaks[1:]),
        "first_peak": peaks[0],
        "seconds": median(steady),
        "seconds_on_card": median(row.get("calls_on_card", steady)),
    }
    return row


def _timed(call: Any) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _kernels(call: Any) -> list[Any]:
    """The kernels of one call: name, number and seconds, the longest first; empty if the profiler sees none."""
    try:
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            call()
            torch.cuda.synchronize()
        found = [(each.key[:90], each.count, each.device_time_total / 1e6) for each in profiler.key_averages()]
        return sorted((each for each in found if each[2] > 0), key=lambda each: -each[2])[:60]
    except Exception as error:  # a measurement without kernels is still one
        return [f"{error!r}"[:200]]


class _Memory:
    """What torch's allocator says about the card."""

    def __init__(self, device: str) -> None:
        self._on_card = device == "cuda"
        self._before = torch.cuda.memory_allocated() if self._on_card else 0

    def allocated(self) -> int:
        return torch.cuda.memory_allocated() if self._on_card else 0

    def reserved(self) -> int:
        return torch.cuda.memory_reserved() if self._on_card else 0

    def reset(self) -> None:
        if self._on_card:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()

    def peak(self) -> int:
        return torch.cuda.max_memory_allocated() if self._on_card else 0


def _show(chosen: list[TrainingProgram], rows: Iterator[Row], arguments: argparse.Namespace, machine: Row) -> None:
    """Print a line for each program, and how far the predictions are off."""
    line = _markdown if arguments.markdown else _line
    if not arguments.markdown:
        print(f"{machine.get('name')}, torch {machine.get('torch')}, model {arguments.model}", flush=True)
        print(
            f"{'program':<56} {'peak MiB: predicted, measured':>29} {'first':>8} {'step ms: predicted, measured':>28}"
        )
    memory, times = [], []
    for program, row in zip(chosen, rows, strict=True):
        if "error" in row:
            print(f"{program.name:<56} {row['error'][:120]}", flush=True)
            continue
        found = _compared(row, _predicted(program, arguments.model, machine))
        memory += [found.memory] if found.memory is not None else []
        times += [found.time] if found.time is not None else []
        print(line(program.name, found), flush=True)
    for name, off in (("memory", memory), ("time", times)):
        if off:
            sizes = sorted(map(abs, off))
            print(f"{name}: median {median(sizes):.1%}, worst {sizes[-1]:.1%} of {len(sizes)}")


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One program, predicted and measured."""

    peak: float | None
    measured_peak: float
    first_peak: float
    seconds: float | None
    measured_seconds: float

    @property
    def memory(self) -> float | None:
        """How far the predicted peak is off, as a fraction."""
        return None if self.peak is None else self.peak / self.measured_peak - 1

    @property
    def time(self) -> float | None:
        """How far the predicted step is off."""
        return None if self.seconds is None else self.seconds / self.measured_seconds - 1


def _compared(row: Row, found: Any) -> Compared:
    # What earlier programs of the same process left behind is not this program's.
    before = 0 if found is None else _left_behind(row, found)
    return Compared(
        peak=None if found is None else found.prediction.peak_bytes,
        measured_peak=row["peak"] - before,
        first_peak=row["first_peak"] - before,
        seconds=None if found is None else _step_seconds(found.prediction),
        measured_seconds=row["seconds_on_card"],
    )


def _line(name: str, found: Compared) -> str:
    return (
        f"{name:<56} {_mib(found.peak):>10} {_mib(found.measured_peak):>10} {_percent(found.memory):>7} "
        f"{_mib(found.first_peak):>8} {_ms(found.seconds):>10} {_ms(found.measured_seconds):>9} "
        f"{_percent(found.time):>7}"
    )


def _markdown(name: str, found: Compared) -> str:
    return (
        f"| {name} | {_mib(found.peak)} MiB | {_mib(found.measured_peak)} MiB | {_percent(found.memory)} "
        f"| {_ms(found.seconds)} ms | {_ms(found.measured_seconds)} ms | {_percent(found.time)} |"
    )


def _left_behind(row: Row, found: Any) -> int:
    """What earlier programs of the process have left: all that is allocated besides the state of this one.

    A workspace of cuBLAS among it is this program's too, if it runs on the same stream and gets no other.
    """
    workspace = found.prediction.model.memory.workspace_bytes
    before = int(row["allocated_after_compile"]) - int(found.state_bytes)
    has_own = row["allocated"] - row["allocated_after_compile"] >= workspace
    return before if has_own or before < workspace else before - workspace


def _step_seconds(prediction: Any) -> float:
    """The time of a call whose inputs are on the card, as it is measured."""
    parts = prediction.by_part
    device = sum(parts[name] for name in ("compute", "launch") if name in parts)
    batching = prediction.traced.batching
    return device * batching.device_iterations + prediction.model.overheads.call_seconds


def _predicted(program: TrainingProgram, model: str, machine: Row) -> Any:
    from benchmarks.prediction.predicted import expected
    from pilotage.prediction.devices import device_model

    try:
        return expected(program, device_model(model), machine)
    except Exception as error:  # a program that cannot be predicted is a line of the table too
        print(f"    {program.name} was not predicted: {type(error).__name__}: {str(error)[:300]}")
        return None


def _mib(value: float | None) -> str:
    return "-" if value is None else f"{value / 2**20:,.1f}"


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value * 1e3:.2f}"


def _percent(value: float | None) -> str:
    if value is None:
        return "-"
    return "0 %" if abs(value) < 5e-4 else f"{100 * value:+.1f} %"


if __name__ == "__main__":
    main()
