"""The sandbox process: reads names of files, forks for each, and writes the outcome."""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from hostile.watching import Watch

_SIGNALS = {signal.SIGALRM: "hung"}


def main() -> None:
    """Handle files until the input ends."""
    name, warm_up, seconds, memory = sys.argv[1:]
    module, _, function = name.partition(":")
    act: Callable[[Path], str] = getattr(importlib.import_module(module), function)
    out = os.fdopen(os.dup(1), "w")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    # Import lazily loaded modules now, so that the forks have them.
    act(Path(warm_up))
    _answer(out, {"ready": True})
    for line in sys.stdin:
        _answer(out, attempt(act, Path(json.loads(line)), int(seconds), int(memory)))


def attempt(act: Callable[[Path], str], path: Path, seconds: int, memory: int) -> dict:
    """Open a file in a fork, and report the outcome."""
    reading, writing = os.pipe()
    before = _resident()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _in_fork(act, path, seconds, memory, writing)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    _, status, usage = os.wait4(child, 0)
    growth = max(0, usage.ru_maxrss * 1024 - before)
    if os.WIFSIGNALED(status):
        number = signal.Signals(os.WTERMSIG(status))
        return {"ended": _SIGNALS.get(number, "crashed"), "said": number.name, "violations": [], "growth": growth}
    if not text:
        return {"ended": "crashed", "said": f"exit {status}", "violations": [], "growth": growth}
    return {**json.loads(text), "growth": growth}


def _in_fork(act: Callable[[Path], str], path: Path, seconds: int, memory: int, writing: int) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit = _mapped() + memory
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    watch = Watch(path)
    watch.install()
    try:
        ended, said = "done", act(path)
    except Exception as error:
        ended, said = "refused", f"{type(error).__name__}: {error}"[:500]
    except BaseException as error:
        watch.violations.append(f"raised {type(error).__name__}")
        ended, said = "crashed", type(error).__name__
    watch.stop()
    os.write(writing, json.dumps({"ended": ended, "said": said, "violations": watch.violations}).encode())
    os._exit(0)


def _answer(out, value: dict) -> None:
    out.write(json.dumps(value) + "\n")
    out.flush()


def _resident() -> int:
    return _pages(1) * resource.getpagesize()


def _mapped() -> int:
    return _pages(0) * resource.getpagesize()


def _pages(column: int) -> int:
    return int(Path("/proc/self/statm").read_text().split()[column])


if __name__ == "__main__":
    main()
