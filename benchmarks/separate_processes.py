"""Contenders in separate processes, so that they do not affect each other, and compile in parallel.

Each process runs ``python -m benchmarks.separate_processes MODULE NAME DEVICE``: it gets this contender from the
module, does a first round, and then one more round for each line on its standard input.
"""

from __future__ import annotations

import importlib
import os
import resource
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

from benchmarks.comparison import Contender

_READY = "ready for a round"


@contextmanager
def in_processes(
    module: str, names: Iterable[str], device: str, *, path: Sequence[str] = ()
) -> Iterator[list[Contender]]:
    """The contenders of a module, each warmed up in its own process, which ends with the block.

    ``path`` is put first in the module search path, to measure the sources of another checkout.
    """
    with ExitStack() as stack:
        processes = {name: stack.enter_context(_started(module, name, device, path)) for name in names}
        for name, process in processes.items():
            _wait(name, process)
        contenders = [Contender(name, lambda: 0) for name in processes]
        for contender in contenders:
            contender.round = partial(_round, contender, processes[contender.name])
        yield contenders


@contextmanager
def _started(module: str, name: str, device: str, path: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.separate_processes", module, name, device],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*path, *sys.path])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()


def _round(contender: Contender, process: subprocess.Popen[str]) -> int:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    steps, contender.peak_bytes = _wait(contender.name, process)
    return steps


def _wait(name: str, process: subprocess.Popen[str]) -> tuple[int, int]:
    """Wait for the end of a round; returns its number of steps, and the peak memory of the process."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(_READY):
            steps, peak = line.removeprefix(_READY).split()
            return int(steps), int(peak)
        print(line, end="")
    raise RuntimeError(f"The process of {name!r} ended with status {process.wait()}; its output is above.")


def _contend(module: str, name: str, device: str) -> None:
    do_round = importlib.import_module(module).contender(name, device)
    do_round()
    # Libraries try algorithms in the first round, which is not what a run needs later.
    _forget_peak(device)
    while True:
        print(f"{_READY} {do_round()} {_peak_bytes(device)}", flush=True)
        if not sys.stdin.readline():
            return


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
