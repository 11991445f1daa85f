"""Contenders that have a process each: nothing that one compiles or keeps changes another, and all compile at once.

The process runs ``python -m benchmarks.apart MODULE NAME DEVICE``: it asks the module for the contender of that name, does a
first round, and then does one more for each line that it is sent.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from benchmarks.contest import Contender

_READY = "ready for a round"


@contextmanager
def apart(module: str, names: Iterable[str], device: str, *, path: Sequence[str] = ()) -> Iterator[list[Contender]]:
    """The contenders of a module, each warmed up in a process of its own, which ends with the block.

    ``path`` is searched for modules before everything else, to measure the sources of another checkout.
    """
    with ExitStack() as stack:
        processes = {name: stack.enter_context(_started(module, name, device, path)) for name in names}
        for name, process in processes.items():
            _wait(name, process)
        yield [Contender(name, lambda name=name: _round(name, processes[name])) for name in processes]


@contextmanager
def _started(module: str, name: str, device: str, path: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.apart", module, name, device],
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
    """Wait until a round is over; return how many steps it had."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(_READY):
            return int(line.removeprefix(_READY))
        print(line, end="")
    raise RuntimeError(f"The process of {name!r} has ended with status {process.wait()}; what it said is above.")


def _contend(module: str, name: str, device: str) -> None:
    do_round = importlib.import_module(module).contender(name, device)
    while True:
        print(f"{_READY} {do_round()}", flush=True)
        if not sys.stdin.readline():
            return


if __name__ == "__main__":
    _contend(*sys.argv[1:])
