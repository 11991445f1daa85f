"""Whose a process is, what it was started as and how long ago, as far as the kernel tells this user."""

from __future__ import annotations

import os
import pwd
import time
from pathlib import Path

from pilotage.monitoring.identity import process_state
from pilotage.monitoring.kernel_files import text_of


def user_of(pid: int) -> str | None:
    """The name of the user that a process belongs to; None where there is no such process for this user."""
    try:
        number = os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def command_of(pid: int) -> str:
    """The command line of a process of this user; of somebody else's, the name of the program alone."""
    folder = Path(f"/proc/{pid}")
    try:
        is_own = folder.stat().st_uid == os.geteuid()
    except OSError:
        return ""
    name = text_of(folder / "comm")
    program, *arguments = text_of(folder / "cmdline").rstrip("\0").split("\0") if is_own else [name]
    return " ".join([Path(program).name or name, *arguments])


def seconds_of(pid: int) -> float | None:
    """For how long a process has been there."""
    state = process_state(pid)
    if state is None:
        return None
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - state.started / os.sysconf("SC_CLK_TCK"))
