"""Processes as the kernel shows them: identity, owner, command line, age."""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pilotage.monitoring.kernel_files import text_of

_DEAD = ("Z", "X", "x")
_PATTERN = re.compile(r"(?P<pid>\d{1,10})-(?P<started>\d{1,20})-(?P<namespace>[0-9a-f]{12})-[0-9a-f]{8}")


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessIdentity:
    """A process that is never mistaken for another one with a reused PID."""

    pid: int
    started: int
    """Kernel ticks from boot to the start of the process."""

    namespace: str
    """A digest of the boot ID and the PID namespace."""

    @classmethod
    def of_this_process(cls) -> Self:
        """This process; raises an OSError if the kernel hides it."""
        pid = os.getpid()
        state = process_state(pid)
        if state is None:
            raise OSError(f"/proc/{pid}/stat does not show when this process started")
        return cls(pid=pid, started=state.started, namespace=current_namespace())

    @classmethod
    def from_name(cls, name: str) -> Self | None:
        """The process in the name of a run file; None for any other file."""
        matched = _PATTERN.fullmatch(name)
        if matched is None:
            return None
        return cls(pid=int(matched["pid"]), started=int(matched["started"]), namespace=matched["namespace"])

    def name_for(self, token: str) -> str:
        """The name, without suffix, of the run file of one program of this process."""
        return f"{self.pid}-{self.started}-{self.namespace}-{token}"

    def is_alive(self) -> bool:
        """Whether the process is running; only valid in its own namespace."""
        state = process_state(self.pid)
        return state is not None and state.started == self.started and state.letter not in _DEAD


@dataclass(frozen=True, slots=True)
class ProcessState:
    """The state of a process according to the kernel."""

    letter: str
    started: int


def process_state(pid: int) -> ProcessState | None:
    """The state and start of a process; None if it does not exist or is hidden from this user."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        # The name of the program is in parentheses and may itself contain parentheses.
        letter, *others = line.rpartition(")")[2].split()
        return ProcessState(letter, int(others[18]))
    except (OSError, ValueError, IndexError):
        return None


def current_namespace() -> str:
    """The namespace of this process: this boot of this machine, this PID namespace."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()
    return hashlib.sha256(f"{boot} {os.readlink('/proc/self/ns/pid')}".encode()).hexdigest()[:12]


def user_of(pid: int) -> str | None:
    """The name of the owner of a process; None if it does not exist or is hidden from this user."""
    try:
        number = os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def command_of(pid: int) -> str:
    """The command line of a process of this user; for other users' processes, only the program's name."""
    folder = Path(f"/proc/{pid}")
    try:
        is_own = folder.stat().st_uid == os.geteuid()
    except OSError:
        return ""
    name = text_of(folder / "comm")
    program, *arguments = text_of(folder / "cmdline").rstrip("\0").split("\0") if is_own else [name]
    return " ".join([Path(program).name or name, *arguments])


def seconds_of(pid: int) -> float | None:
    """How long a process has been running."""
    state = process_state(pid)
    if state is None:
        return None
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - state.started / os.sysconf("SC_CLK_TCK"))
