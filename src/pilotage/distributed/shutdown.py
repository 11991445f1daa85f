"""An end without a crash: threads of torch come to rest before the interpreter goes.

A thread of gloo that has finished an exchange still drops the tensors of it. Where it gets to that while the interpreter is
being taken down, CPython before 3.14 ends the thread in the middle of C++ code, and the whole process aborts after it has done
all its work. On a busy machine that happens to one process in twenty.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

_THREADS = Path("/proc/self/task")
_LOOK_AGAIN = 0.002
# A thread that waits for the interpreter sleeps too: one look may meet it just then.
_LOOKS = 3


def wait_for_idle_threads(limit: float = 2.0) -> bool:
    """Wait until all other threads of the process sleep; False where some still ran after `limit` seconds.

    The calling thread sleeps in between, so that those which wait for the interpreter get it.
    """
    if not _THREADS.exists():
        return True
    own = str(threading.get_native_id())
    end = time.monotonic() + limit
    looks = 0
    while looks < _LOOKS and time.monotonic() < end:
        time.sleep(_LOOK_AGAIN)
        busy = any(_runs(thread) for thread in _THREADS.iterdir() if thread.name != own)
        looks = 0 if busy else looks + 1
    return looks == _LOOKS


def _runs(thread: Path) -> bool:
    try:
        state = (thread / "stat").read_text()
    except OSError:
        # It has ended between the two looks.
        return False
    # The name in parentheses may itself hold anything.
    return state.rpartition(")")[2].split()[0] in ("R", "D")
