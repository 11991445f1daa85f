"""Wait for torch's threads before the interpreter shuts down.

After an exchange a thread of gloo still releases its tensors. If that happens while the interpreter shuts down, CPython
before 3.14 ends the thread in the middle of C++ code, and the process aborts after all its work is done. On a busy
machine this happens to one process in twenty.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

_THREADS = Path("/proc/self/task")
_POLL_SECONDS = 0.002
# A thread that waits for the interpreter also sleeps, so one poll is not enough.
_IDLE_POLLS = 3


def wait_for_idle_threads(limit: float = 2.0) -> bool:
    """Wait until all other threads of the process sleep; False if some still run after ``limit`` seconds.

    The calling thread sleeps in between, so that threads that wait for the interpreter can run.
    """
    if not _THREADS.exists():
        return True
    own = str(threading.get_native_id())
    end = time.monotonic() + limit
    idle = 0
    while idle < _IDLE_POLLS and time.monotonic() < end:
        time.sleep(_POLL_SECONDS)
        busy = any(_is_running(thread) for thread in _THREADS.iterdir() if thread.name != own)
        idle = 0 if busy else idle + 1
    return idle == _IDLE_POLLS


def _is_running(thread: Path) -> bool:
    try:
        state = (thread / "stat").read_text()
    except OSError:
        # It has just ended.
        return False
    # The name in parentheses may contain anything.
    return state.rpartition(")")[2].split()[0] in ("R", "D")
