"""Locks that threads take in turns, and that keep interrupts out.

A thread takes several in this order: the executor's, the weights', then `PROCESS_WIDE`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Concatenate, ParamSpec, Protocol, TypeVar
from weakref import WeakSet

from pilotage.interrupts import INTERRUPTS

_SIGNAL_INTERVAL = 0.05
"""Seconds after which a waiting thread lets signals in."""


class Turn:
    """A reentrant lock that delays interrupts until it is released."""

    def __init__(self) -> None:
        self.lock = RLock()
        """For users that need no protection from interrupts; not for turns that may be joined."""
        self._taken: list[RLock] = []
        self._depth = 0
        """How many more times its holder has taken it."""
        self._joined: WeakSet[Turn] = WeakSet()
        """The turns that use the lock of this one."""
        _ALL.add(self)

    def __enter__(self) -> None:
        """Take the turn; wait for it if necessary."""
        lock = self.lock
        if self._taken and lock._is_owned():  # type: ignore[attr-defined]
            self._depth += 1
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
            # Acquired just as another thread joined this turn to another one.
            tried.release()
        while not self._take(_SIGNAL_INTERVAL):
            INTERRUPTS.deliver_pending()

    def take(self, seconds: float) -> bool:
        """Try to take the turn for some seconds; returns whether that worked. `give` releases it."""
        if self._taken and self.is_mine:
            self._depth += 1
            return True
        INTERRUPTS.__enter__()
        try:
            is_taken = self._take(seconds)
        except BaseException:
            INTERRUPTS.__exit__()
            raise
        if not is_taken:
            INTERRUPTS.__exit__()
        return is_taken

    def give(self, *exception: object) -> None:
        """Release the turn; delayed signals are delivered."""
        if self._depth:
            self._depth -= 1
            return
        self._taken.pop().release()
        INTERRUPTS.__exit__()

    __exit__ = give

    @property
    def is_mine(self) -> bool:
        """Whether this thread holds the turn."""
        return bool(self.lock._is_owned())  # type: ignore[attr-defined]

    def join(self, other: Turn) -> None:
        """Use the lock of another turn from now on; waits until the old lock is free."""
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

    def reset_after_fork(self) -> None:
        """In a forked process: release a turn whose holder was a thread of the parent."""
        if not self.is_mine:
            self.lock._at_fork_reinit()  # type: ignore[attr-defined]
            self._taken, self._depth = [], 0


class TakesTurns(Protocol):
    """An object that several threads may use."""

    turn: Turn


_Self = TypeVar("_Self", bound=TakesTurns)
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_Method = Callable[Concatenate[_Self, _Arguments], _Result]


def in_turn(method: _Method[_Self, _Arguments, _Result]) -> _Method[_Self, _Arguments, _Result]:
    """A method that holds the turn of its object: one thread at a time, not interrupted half-way."""

    @wraps(method)
    def called(self: _Self, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        with self.turn:
            return method(self, *args, **kwargs)

    return called


_ALL: WeakSet[Turn] = WeakSet()


def _reset_all_after_fork() -> None:
    for turn in _ALL:
        turn.reset_after_fork()


os.register_at_fork(after_in_child=_reset_all_after_fork)

_JOINING = Turn()

PROCESS_WIDE = Turn()
"""For state that a process has once: torch's tracer, its generators, and modules whose tensors are replaced."""
