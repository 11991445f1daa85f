"""Which process is meant, so that a number that the system has given out again is not mistaken."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_DEAD = ("Z", "X", "x")
_PATTERN = re.compile(r"(?P<pid>\d{1,10})-(?P<started>\d{1,20})-(?P<place>[0-9a-f]{12})-[0-9a-f]{8}")


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessIdentity:
    """A process for all time: its number, when it was started, and where that number counts."""

    pid: int
    started: int
    """Ticks of the kernel from its boot to the start of the process."""

    place: str
    """A digest of the boot and the namespace of process numbers."""

    @classmethod
    def of_this_process(cls) -> Self:
        """This process; raises an OSError where the kernel does not say."""
        pid = os.getpid()
        state = process_state(pid)
        if state is None:
            raise OSError(f"/proc/{pid}/stat does not say when this process was started")
        return cls(pid=pid, started=state.started, place=place_here())

    @classmethod
    def from_name(cls, name: str) -> Self | None:
        """The process that has given a file its name; None for any other file."""
        matched = _PATTERN.fullmatch(name)
        if matched is None:
            return None
        return cls(pid=int(matched["pid"]), started=int(matched["started"]), place=matched["place"])

    def name_for(self, token: str) -> str:
        """The name, without ending, of the file that tells of one program of this process."""
        return f"{self.pid}-{self.started}-{self.place}-{token}"

    def lives(self) -> bool:
        """Whether the process is there; asked where its number counts."""
        state = process_state(self.pid)
        return state is not None and state.started == self.started and state.letter not in _DEAD


@dataclass(frozen=True, slots=True)
class ProcessState:
    """What the kernel says of a process."""

    letter: str
    started: int


def process_state(pid: int) -> ProcessState | None:
    """The state and start of a process; None where there is none, or it is not shown to this user."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        # The name of the program stands in parentheses and may hold anything, parentheses too.
        letter, *others = line.rpartition(")")[2].split()
        return ProcessState(letter, int(others[18]))
    except (OSError, ValueError, IndexError):
        return None


def place_here() -> str:
    """Where process numbers seen from here count: this boot of this machine, this namespace."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()
    return hashlib.sha256(f"{boot} {os.readlink('/proc/self/ns/pid')}".encode()).hexdigest()[:12]
