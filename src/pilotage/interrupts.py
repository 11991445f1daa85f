"""Signals that wait until what is under way is whole again.

Python runs a signal's handler between any two instructions of the main thread, and Ctrl-C raises there. In the middle of an
update, of a copy of the weights or of a capture that would leave half of each. Inside of ``with INTERRUPTS`` handlers wait;
`Interrupts.let_in` runs those that do at a moment that is safe, and so does the end of the block. The handlers are the
program's own and are back in their place afterwards.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from _signal import getsignal  # type: ignore[import-not-found]
from _signal import signal as set_handler
from _thread import get_ident
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import main_thread
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGCHLD", "SIGUSR1", "SIGUSR2")
_NUMBERS = tuple(int(getattr(signal, name)) for name in _NAMES if hasattr(signal, name))
"""Signals that programs and libraries raise exceptions for; torch's data loaders do for a worker that has died."""

_PATIENCE = 2.0
"""Seconds after which the same signal, if it comes again, is not made to wait any longer."""


class Interrupts:
    """Holds signals back in the main thread; elsewhere Python delivers none, and nothing is done."""

    def __init__(self) -> None:
        self._main = main_thread().ident
        self._depth = 0
        self._found: list[Any] = []
        """What handled each of the signals when they were last held."""
        self._numbers: list[int] = []
        """The signals among them that have a handler in Python, with their handlers and with ours."""
        self._theirs: list[Handler] = []
        self._ours: list[Handler] = []
        self._waiting: dict[int, Handler] = {}
        self._since = 0.0
        self._open_at = 0
        """The depth at which signals are let in at once; 0 where there is none."""

    # Once or twice in every call: what could be functions of their own is written out.

    def __enter__(self) -> None:
        """Let signals wait from here on."""
        if get_ident() != self._main:
            return
        if self._depth == 0:
            found = list(map(getsignal, _NUMBERS))
            if found != self._found:
                self._look_at(found)
            self._open_at = 0
            try:
                # One call of C: no handler can run between two of these.
                list(map(set_handler, self._numbers, self._ours))
            except BaseException:
                list(map(set_handler, self._numbers, self._theirs))
                raise
        self._depth += 1

    def __exit__(self, *exception: object) -> None:
        """Put the handlers back, and run those that have waited."""
        if self._depth == 0 or get_ident() != self._main:
            return
        self._depth -= 1
        if self._depth == 0:
            self._release()
        if self._waiting and self._depth == self._open_at:
            self._deliver()

    def let_in(self) -> None:
        """Run the handlers that wait: what is under way may be left at this point."""
        if self._waiting and get_ident() == self._main:
            self._deliver()

    @contextmanager
    def open(self) -> Iterator[None]:
        """Let signals in at any moment of the block, which takes long and changes nothing; what it holds itself is held."""
        if get_ident() != self._main:
            yield
            return
        self.let_in()
        before, self._open_at = self._open_at, self._depth
        try:
            yield
        finally:
            self._open_at = before

    def _look_at(self, found: list[Any]) -> None:
        own = self._note
        theirs = {number: each for number, each in zip(_NUMBERS, found, strict=True) if callable(each) and each != own}
        self._numbers, self._theirs, self._ours = list(theirs), list(theirs.values()), [own] * len(theirs)
        self._found = found

    def _release(self) -> None:
        try:
            present = list(map(set_handler, self._numbers, self._theirs))
        except BaseException:
            list(map(set_handler, self._numbers, self._theirs))
            raise
        if present != self._ours:
            # Whoever has set another handler meanwhile keeps it.
            for number, handler in zip(self._numbers, present, strict=True):
                if handler != self._note:
                    set_handler(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        now, handler = time.monotonic(), self._theirs[self._numbers.index(number)]
        is_impatient = number in self._waiting and now - self._since > _PATIENCE
        is_open = self._depth > 0 and self._depth == self._open_at
        if is_open or is_impatient:
            self._waiting.pop(number, None)
            handler(number, frame)
            return
        if not self._waiting:
            self._since = now
        self._waiting.setdefault(number, handler)

    def _deliver(self) -> None:
        number, handler = next(iter(self._waiting.items()))
        del self._waiting[number]
        try:
            handler(number, sys._getframe(1))
        finally:
            if self._waiting:
                self._deliver()

    def start_again(self) -> None:
        """In a process that was forked: its only thread is the main one, and nobody else holds anything."""
        if get_ident() == self._main:
            return
        self._main = get_ident()
        if self._depth:
            self._release()
        self._depth = 0
        self._waiting.clear()


INTERRUPTS = Interrupts()
"""Signals belong to the process, and so does this."""

os.register_at_fork(after_in_child=INTERRUPTS.start_again)
