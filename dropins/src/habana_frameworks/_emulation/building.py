"""Runs the C++ compiler and shows how long it takes."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from pilotage.engine import Warned, log_event

_USUAL_SECONDS = 30
_WIDTH = 24


class CannotBuildError(ImportError):
    """The emulated device cannot be built on this machine; the message says what to do."""


def run_compiler(name: str, command: Callable[[str], list[str]]) -> None:
    """Compile, with a progress line on a terminal, and log the seconds."""
    compiler = shutil.which(name)
    if compiler is None:
        raise CannotBuildError(
            f"The emulated Gaudi device needs a C++ compiler on first use, and {name!r} was not found. Install g++ (12 "
            "or newer), or set CXX to a compiler."
        )
    _log(
        f"Building the emulated Gaudi device with {compiler}, once for this torch; this takes about "
        f"{_USUAL_SECONDS} s. `python -m habana_frameworks.build` does it ahead of time."
    )
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(command(compiler), stdout=errors, stderr=errors) as process:
            _show_progress(process, start)
        errors.seek(0)
        text = errors.read()
    if process.returncode != 0:
        raise CannotBuildError(f"{compiler} could not build the emulated Gaudi device:\n{text[-4000:]}")
    _log(f"The emulated Gaudi device was built in {time.perf_counter() - start:.0f} s.")


def _show_progress(process: subprocess.Popen[bytes], start: float) -> None:
    """Wait for the compiler. On a terminal, a line counts the seconds; the bar is an estimate from the usual time."""
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    while True:
        try:
            process.wait(timeout=0.5 if is_terminal else None)
            break
        except subprocess.TimeoutExpired:
            print(f"\r{_progress_line(time.perf_counter() - start)}", end="", file=sys.stderr, flush=True)
    if is_terminal:
        print(f"\r{' ' * (len(_progress_line(0.0)) + 4)}\r", end="", file=sys.stderr, flush=True)


def _progress_line(seconds: float) -> str:
    filled = int(_WIDTH * min(seconds / _USUAL_SECONDS, 1.0))
    return f"Building the emulated Gaudi device [{'#' * filled:<{_WIDTH}}] {seconds:3.0f} s"


def _log(message: str) -> None:
    log_event(Warned(message=message))
