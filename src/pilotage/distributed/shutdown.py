"""Wait for torch's threads before the interpreter shuts down.

After an exchange a thread of gloo still releases its tensors. If that happens while the interpreter shuts down, CPython
before 3.14 ends the thread in the middle of C++ code, and the process aborts (signal 6) after all its work is done. On
a busy machine this happens to one process in twenty.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

_THREADS = Path("/proc/self/task")
_OF_GLOO = "pt_gloo_runloop"
"""The name of the threads that exchange tensors and release them."""

_POLL_SECONDS = 0.002
# A thread that waits for the interpreter also sleeps, so one poll is not enough.
_IDLE_POLLS = 3
_DISK_SECONDS = 20.0


@cache
def wait_at_exit() -> None:
    """Wait for idle threads at the end of this process."""
    atexit.register(wait_for_idle_threads)


def wait_for_idle_threads(limit: float = 2.0) -> bool:
    """Wait until all other threads of the process sleep; False if some have run for ``limit`` seconds since.

    Only the time that they spend on a processor counts: on a busy machine a thread may wait minutes for its turn.
    Threads of gloo have no limit, since they would abort the process. Threads that wait for a disk get 20 seconds. The
    calling thread sleeps in between, so that threads that wait for the interpreter can run.
    """
    if not _THREADS.exists():
        return True
    used, deadline = _seconds_used(_other_threads()) + limit, time.monotonic() + _DISK_SECONDS
    idle = 0
    while idle < _IDLE_POLLS:
        time.sleep(_POLL_SECONDS)
        threads = _other_threads()
        states = {thread.state for thread in threads}
        idle = 0 if states & {"R", "D"} else idle + 1
        is_stuck = "D" in states and "R" not in states and time.monotonic() > deadline
        if is_stuck or ("R" in states and not _gloo_runs(threads) and _seconds_used(threads) > used):
            return False
    return True


class _Thread(NamedTuple):
    name: str
    state: str
    ticks: int
    """Time on a processor."""


def _gloo_runs(threads: list[_Thread]) -> bool:
    return any(thread.name == _OF_GLOO and thread.state == "R" for thread in threads)


def _other_threads() -> list[_Thread]:
    own = str(threading.get_native_id())
    return [found for thread in _THREADS.iterdir() if thread.name != own and (found := _look(thread)) is not None]


def _look(thread: Path) -> _Thread | None:
    try:
        text = (thread / "stat").read_text()
    except OSError:
        # It has just ended.
        return None
    # The name in parentheses may contain anything; the state is field 3, user and system time are fields 14 and 15.
    start, _, end = text.rpartition(")")
    fields = end.split()
    return _Thread(start.partition("(")[2], fields[0], int(fields[11]) + int(fields[12]))


def _seconds_used(threads: list[_Thread]) -> float:
    """By other threads than gloo's."""
    ticks = sum(thread.ticks for thread in threads if thread.name != _OF_GLOO)
    return ticks / os.sysconf("SC_CLK_TCK")
