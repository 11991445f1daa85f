"""Threads that take turns.

The order in which a thread takes several: an executor's own, then the one of the weights, then `PROCESS_WIDE`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from threading import RLock
from types import TracebackType
from typing import Concatenate, ParamSpec, Protocol, TypeVar
from weakref import WeakSet

from pilotage.interrupts import INTERRUPTS

_LOOK_AROUND = 0.05
"""Seconds after which a thread that waits lets signals in."""


class Turn:
    """One thread at a time, as often as it likes, and no interrupt before its turn is over."""

    def __init__(self) -> None:
        self.lock = RLock()
        """For whoever needs no protection from interrupts; not of turns that may be joined."""
        self._taken: list[RLock] = []
        self._again = 0
        """How often the thread whose turn it is has asked for it again."""
        self._joined: WeakSet[Turn] = WeakSet()
        """Those that are one turn with this one."""
        _ALL.add(self)

    def __enter__(self) -> None:
        """Wait for the turn."""
        lock = self.lock
        if self._taken and lock._is_owned():  # type: ignore[attr-defined]
            self._again += 1
            return
        INTERRUPTS.__enter__()
        try:
            if lock.acquire(False) and lock is self.lock:
                self._taken.append(lock)
            else:
                self._wait(lock)
        except BaseException:
            INTERRUPTS.__exit__()
            raise

    def _wait(self, tried: RLock) -> None:
        if tried._is_owned():  # type: ignore[attr-defined]
            # Taken just now, and joined to another turn at the same moment.
            tried.release()
        while not self._take(_LOOK_AROUND):
            INTERRUPTS.let_in()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the turn."""
        self.give()

    def take(self, seconds: float) -> bool:
        """Wait for the turn for a while; tells whether it has come. `give` ends it."""
        if self._taken and self.is_mine:
            self._again += 1
            return True
        INTERRUPTS.__enter__()
        try:
            has_come = self._take(seconds)
        except BaseException:
            INTERRUPTS.__exit__()
            raise
        if not has_come:
            INTERRUPTS.__exit__()
        return has_come

    def give(self) -> None:
        """End the turn; signals that have waited are let in."""
        if self._again:
            self._again -= 1
            return
        self._taken.pop().release()
        INTERRUPTS.__exit__()

    @property
    def is_mine(self) -> bool:
        """Whether it is this thread's turn."""
        return bool(self.lock._is_owned())  # type: ignore[attr-defined]

    def join(self, other: Turn) -> None:
        """Be one turn with another from now on; waits until nobody is left in the old one."""
        with _JOINING, self:
            if self.lock is not other.lock:
                for each in (self, *self._joined):
                    each.lock = other.lock
                    other._joined.add(each)

    def _take(self, seconds: float) -> bool:
        lock = self.lock
        if not lock.acquire(blocking=False) and not lock.acquire(timeout=seconds):
            return False
        if lock is not self.lock:
            lock.release()
            return False
        self._taken.append(lock)
        return True

    def start_again(self) -> None:
        """In a process that was forked: a turn of a thread that is not there any more would never end."""
        if not self.is_mine:
            self.lock._at_fork_reinit()  # type: ignore[attr-defined]
            self._taken, self._again = [], 0


class TakesTurns(Protocol):
    """What several threads may use."""

    turn: Turn


_Self = TypeVar("_Self", bound=TakesTurns)
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_Method = Callable[Concatenate[_Self, _Arguments], _Result]


def in_turn(method: _Method[_Self, _Arguments, _Result]) -> _Method[_Self, _Arguments, _Result]:
    """A method that one thread calls at a time, and that no interrupt leaves half done."""

    @wraps(method)
    def called(self: _Self, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        with self.turn:
            return method(self, *args, **kwargs)

    return called


_ALL: WeakSet[Turn] = WeakSet()


def _start_again() -> None:
    for turn in _ALL:
        turn.start_again()


os.register_at_fork(after_in_child=_start_again)

_JOINING = Turn()

PROCESS_WIDE = Turn()
"""For what a process has once: torch's tracer, its random generators, and the tables of a module that is lent other tensors."""
