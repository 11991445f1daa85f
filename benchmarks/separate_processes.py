"""Contenders in separate processes, so that they do not affect each other, and compile in parallel.

Each process runs ``python -m benchmarks.separate_processes MODULE NAME DEVICE``: it gets this contender from the
module, does a first round, and then one more round for each line on its standard input. A line that names a file asks
to add a profile of that round to it: the kernels of the card, and the time that each took.
"""

from __future__ import annotations

import importlib
import operator
import os
import queue
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.comparison import Contender

_READY = "ready for a round"


@contextmanager
def in_processes(
    module: str, names: Iterable[str], device: str, *, path: Sequence[str] = (), limit: float | None = None
) -> Iterator[list[Contender]]:
    """The contenders of a module, each warmed up in its own process, which ends with the block.

    ``path`` is put first in the module search path, to measure the sources of another checkout. Contenders that are not
    ready after ``limit`` seconds, or whose process ends, are left out with a line that says so; without a limit, the
    end of a process is an error.
    """
    with ExitStack() as stack:
        start = time.monotonic()
        contenders = []
        processes = [_Process(module, name, device, path) for name in names]
        for process in processes:
            stack.callback(process.end)
        for process in processes:
            try:
                process.wait(None if limit is None else start + limit)
            except (RuntimeError, TimeoutError) as error:
                if limit is None:
                    raise
                process.end()
                print(f"Left out: {error}", flush=True)
                continue
            contender = Contender(process.name, lambda: 0)
            contender.round = contender.profile = partial(_round, contender, process)
            contenders.append(contender)
        yield contenders


def warm_up(module: str, name: str, device: str, *, limit: float) -> float:
    """Run a contender until it has done its first round, to fill caches; returns how many seconds that took.

    Raises TimeoutError after ``limit`` seconds, and RuntimeError if its process ends before.
    """
    process = _Process(module, name, device, ())
    try:
        return process.wait(time.monotonic() + limit).seconds_until_ready
    finally:
        process.end()


@dataclass(frozen=True)
class _Ready:
    """What a process says after a round."""

    steps: int
    peak_bytes: int
    seconds_until_ready: float
    """From its start to the end of its first round."""


class _Process:
    """The process of a contender."""

    def __init__(self, module: str, name: str, device: str, path: Sequence[str]) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.separate_processes", module, name, device],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([*path, *sys.path])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def round(self, profile: str = "") -> _Ready:
        """Do a round, and write its profile into a file if one is named."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{profile}\n")
        self._process.stdin.flush()
        return self.wait()

    def wait(self, deadline: float | None = None) -> _Ready:
        """Wait for the end of a round."""
        while True:
            try:
                line = self._lines.get(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise TimeoutError(f"{self.name!r} was not ready in time.") from None
            if not line:
                status = self._process.wait()
                raise RuntimeError(f"The process of {self.name!r} ended with status {status}; its output is above.")
            if line.startswith(_READY):
                steps, peak, seconds = line.removeprefix(_READY).split()
                return _Ready(int(steps), int(peak), float(seconds))
            print(line, end="")

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()


def _round(contender: Contender, process: _Process, profile: str = "") -> int:
    done = process.round(profile)
    contender.peak_bytes, contender.seconds_until_ready = done.peak_bytes, done.seconds_until_ready
    return done.steps


def _contend(module: str, name: str, device: str) -> None:
    start = time.monotonic()
    do_round = importlib.import_module(module).contender(name, device)
    do_round()
    seconds = time.monotonic() - start
    # Libraries try algorithms in the first round, which is not what a run needs later.
    _forget_peak(device)
    file = ""
    while True:
        steps = profiled(do_round, name, Path(file), device) if file else do_round()
        print(f"{_READY} {steps} {_peak_bytes(device)} {seconds:.1f}", flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        file = line.strip()


def profiled(do_round: Callable[[], int], name: str, file: Path, device: str) -> int:
    """Do a round and add the time and the number of runs of each kernel per step to a file, the slowest first."""
    from torch.profiler import ProfilerActivity, profile

    activity = ProfilerActivity.CUDA if device == "cuda" else ProfilerActivity.CPU
    with profile(activities=[activity]) as profiler:
        steps = do_round()
    own = operator.attrgetter("self_device_time_total" if device == "cuda" else "self_cpu_time_total")
    kernels = sorted(profiler.key_averages(), key=own, reverse=True)
    lines = [f"{own(each) / steps:10.1f} us {each.count / steps:7.1f} x  {each.key}" for each in kernels]
    with file.open("a") as profiles:
        profiles.write("\n".join([name, f"{sum(map(own, kernels)) / steps:10.1f} us in all", *lines, "", ""]))
    return steps


def _forget_peak(device: str) -> None:
    """Reset the peak memory of this process."""
    if device == "cuda":
        import torch

        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def _peak_bytes(device: str) -> int:
    """The most memory that this process has had on its device."""
    if device == "cuda":
        import torch

        # Reserved, because the pools of CUDA graphs are not allocated between replays.
        return torch.cuda.max_memory_reserved()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    _contend(*sys.argv[1:])
