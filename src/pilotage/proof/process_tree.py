"""All descendants of a command, even if their parents have exited."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from pilotage.monitoring.processes import process_state

__all__ = ["end_all", "processes_with"]

_GRACE_SECONDS = 5.0
_DEAD = ("Z", "X", "x")


def processes_with(mark: str) -> set[int]:
    """The living processes of this user that have inherited a variable with this text."""
    found = set()
    own, wanted = os.getpid(), mark.encode()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == own:
            continue
        with suppress(OSError):
            if wanted in (folder / "environ").read_bytes():
                found.add(int(folder.name))
    return {each for each in found if _is_alive(each)}


def end_all(mark: str, grace: float = _GRACE_SECONDS) -> int:
    """End all processes with this mark: politely first, then for good. Returns how many there were."""
    left = processes_with(mark)
    count = len(left)
    _send(left, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left = processes_with(mark)
    while left:
        _send(left, signal.SIGKILL)
        time.sleep(0.05)
        left = processes_with(mark)
    return count


def _send(processes: set[int], number: int) -> None:
    for each in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(each, number)


def _is_alive(process: int) -> bool:
    state = process_state(process)
    return state is not None and state.letter not in _DEAD
