"""All descendants of a command, even if their parents have exited."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import NamedTuple, Self

__all__ = ["EndedBySignal", "ProcessTree", "Signals", "ended_by_signals", "processes_with"]

_GRACE_SECONDS = 5.0
_DEAD = ("Z", "X", "x")
_SET_ADOPTS, _GET_ADOPTS = 36, 37
"""prctl's PR_SET_CHILD_SUBREAPER and PR_GET_CHILD_SUBREAPER."""


class EndedBySignal(SystemExit):
    """A signal asked this process to end; the exit status is the one that shells report for that signal."""

    def __init__(self, number: int) -> None:
        self.status = 128 + number
        super().__init__(self.status)
        self.name = signal.Signals(number).name


class Signals:
    """What asked this process to end."""

    def __init__(self) -> None:
        self.number: int | None = None

    def check(self) -> None:
        """Raise again after a signal: Python drops what a handler raises while an object is being freed."""
        if self.number is not None:
            raise EndedBySignal(self.number)


@contextmanager
def ended_by_signals() -> Iterator[Signals]:
    """Raise an `EndedBySignal` where SIGTERM or SIGHUP would end this process at once, so that it can clean up."""
    ours: list[int] = []
    signals = Signals()

    def ended(number: int, _: FrameType | None) -> None:
        # Once is enough: another signal must not interrupt what cleans up.
        for each in ours:
            signal.signal(each, signal.SIG_IGN)
        signals.number = number
        signals.check()

    try:
        for number in (signal.SIGTERM, signal.SIGHUP):
            # Signals that are ignored, as under nohup, or handled by the program stay as they are.
            if signal.getsignal(number) is signal.SIG_DFL:
                with suppress(ValueError):  # In a thread, which gets no signals.
                    signal.signal(number, ended)
                    ours.append(number)
        yield signals
    finally:
        for each in ours:
            signal.signal(each, signal.SIG_DFL)


class _Process(NamedTuple):
    """A process as the kernel shows it."""

    number: int
    letter: str
    parent: int
    session: int
    started: int


class ProcessTree:
    """All processes of a command that is started inside of the block, in a session of its own.

    They are found by their parents, and by a text that they have inherited in a variable. Inside of the block, this
    process becomes the parent of those whose own parent exits: they are found whatever their environment is.
    """

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._others = {(each.number, each.started) for each in _table() if each.parent == os.getpid()}
        """Children that this process has had before."""
        self._has_adopted = False

    def __enter__(self) -> Self:
        """Become the parent of orphans from here on."""
        self._has_adopted = _adopts_orphans()
        _adopt_orphans(True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop adopting orphans; those that have ended are taken from the kernel's table."""
        for each in self._children(_table()):
            with suppress(OSError):
                os.waitpid(each.number, os.WNOHANG)
        _adopt_orphans(self._has_adopted)

    def living(self) -> set[int]:
        """The processes that have not ended, and that this user may end."""
        table = _table()
        found = {each.number for each in self._children(table)} | processes_with(self._mark)
        while more := {each.number for each in table if each.parent in found} - found:
            found |= more
        dead = {each.number for each in table if each.letter in _DEAD}
        return {each for each in found - dead - {os.getpid()} if _may_end(each)}

    def end(self, grace: float = _GRACE_SECONDS) -> int:
        """Ask all processes to end, and kill those that are left after ``grace`` seconds; returns their number."""
        left = self.living()
        count = len(left)
        _send(left, signal.SIGTERM)
        deadline = time.monotonic() + grace
        while left and time.monotonic() < deadline:
            time.sleep(0.05)
            left = self.living()
        while left:
            _send(left, signal.SIGKILL)
            time.sleep(0.05)
            left = self.living()
        return count

    def _children(self, table: list[_Process]) -> list[_Process]:
        """The command and its orphans; other children of this process are in its own session, or older."""
        own, session = os.getpid(), os.getsid(0)
        new = [each for each in table if each.parent == own and (each.number, each.started) not in self._others]
        return [each for each in new if each.session != session]


def processes_with(mark: str) -> set[int]:
    """The living processes of this user that have inherited a variable with this text."""
    found = set()
    own, wanted = os.getpid(), mark.encode()
    for each in _table():
        if each.number != own and each.letter not in _DEAD:
            with suppress(OSError):
                if wanted in Path(f"/proc/{each.number}/environ").read_bytes():
                    found.add(each.number)
    return found


def _table() -> list[_Process]:
    """All processes."""
    numbers = [int(each) for each in os.listdir("/proc") if each.isdigit()]
    return [found for each in numbers if (found := _process(each)) is not None]


def _process(number: int) -> _Process | None:
    """A process; None if it is gone."""
    try:
        line = Path(f"/proc/{number}/stat").read_text(errors="replace")
        # The name of the program is in parentheses and may itself contain parentheses.
        letter, parent, _, session, *others = line.rpartition(")")[2].split()
        return _Process(number, letter, int(parent), int(session), int(others[15]))
    except (OSError, ValueError, IndexError):
        return None


def _send(processes: set[int], number: int) -> None:
    for each in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(each, number)


def _may_end(process: int) -> bool:
    """Whether a process is there and takes signals from this user."""
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True


def _adopts_orphans() -> bool:
    """Whether descendants whose parents exit become children of this process."""
    found = ctypes.c_int(0)
    _prctl(_GET_ADOPTS, ctypes.addressof(found))
    return bool(found.value)


def _adopt_orphans(adopts: bool) -> None:
    """Turn this on or off; kernels without this feature ignore it."""
    _prctl(_SET_ADOPTS, int(adopts))


def _prctl(option: int, argument: int) -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, ctypes.c_ulong(argument), *[ctypes.c_ulong(0)] * 3)
