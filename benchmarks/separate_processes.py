"""Contenders in separate processes, so that they do not affect each other, and compile in parallel.

Each process runs ``python -m benchmarks.separate_processes MODULE NAME DEVICE``: it gets this contender from the
module, does a first round, and then one more round for each line on its standard input.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

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
        yield [Contender(name, lambda name=name: _round(name, processes[name])) for name in processes]


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


def _round(name: str, process: subprocess.Popen[str]) -> int:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return _wait(name, process)


def _wait(name: str, process: subprocess.Popen[str]) -> int:
    """Wait for the end of a round and return its number of steps."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(_READY):
            return int(line.removeprefix(_READY))
        print(line, end="")
    raise RuntimeError(f"The process of {name!r} ended with status {process.wait()}; its output is above.")


def _contend(module: str, name: str, device: str) -> None:
    do_round = importlib.import_module(module).contender(name, device)
    while True:
        print(f"{_READY} {do_round()}", flush=True)
        if not sys.stdin.readline():
            return


if __name__ == "__main__":
    _contend(*sys.argv[1:])
