"""Delay signals until the work in progress is consistent.

Python runs signal handlers between any two instructions of the main thread, and Ctrl-C raises there. In the middle of
an update, a copy of the weights or a capture, that would leave it half done. Inside ``with INTERRUPTS`` handlers wait:
they run when `Interrupts.deliver_pending` is called at a safe point, and at the end of the block. The handlers are the
program's own, and are restored afterwards.
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
"""Signals whose handlers may raise; torch's data loaders raise for a worker that died."""

_MAX_DELAY = 2.0
"""Seconds after which a repeated signal is no longer delayed."""


class Interrupts:
    """Delays signals in the main thread; does nothing in others, where Python delivers none."""

    def __init__(self) -> None:
        self._main = main_thread().ident
        self._depth = 0
        self._found: list[Any] = []
        """The handlers of all signals when the block was last entered."""
        self._numbers: list[int] = []
        """The signals with a Python handler, then their handlers and ours."""
        self._theirs: list[Handler] = []
        self._ours: list[Handler] = []
        self._waiting: dict[int, Handler] = {}
        self._since = 0.0
        self._open_at = 0
        """The depth at which signals are delivered at once; 0 for none."""

    # Runs once or twice in every call, hence the inlined code.

    def __enter__(self) -> None:
        """Delay signals from here on."""
        if get_ident() != self._main:
            return
        if self._depth == 0:
            found = list(map(getsignal, _NUMBERS))
            if found != self._found:
                self._set_handlers(found)
            self._open_at = 0
            try:
                # A single C call: no handler can run in between.
                list(map(set_handler, self._numbers, self._ours))
            except BaseException:
                list(map(set_handler, self._numbers, self._theirs))
                raise
        self._depth += 1

    def __exit__(self, *exception: object) -> None:
        """Restore the handlers, and run the waiting ones."""
        if self._depth == 0 or get_ident() != self._main:
            return
        self._depth -= 1
        if self._depth == 0:
            try:
                present = list(map(set_handler, self._numbers, self._theirs))
            except BaseException:
                list(map(set_handler, self._numbers, self._theirs))
                raise
            if present != self._ours:
                self._keep(present)
        if self._waiting and self._depth == self._open_at:
            self._deliver()

    def deliver_pending(self) -> None:
        """Run the waiting handlers: the work may be left at this point."""
        if self._waiting and get_ident() == self._main:
            self._deliver()

    @contextmanager
    def open(self) -> Iterator[None]:
        """Deliver signals at once inside the block, which takes long and changes nothing; inner blocks delay again."""
        if get_ident() != self._main:
            yield
            return
        self.deliver_pending()
        before, self._open_at = self._open_at, self._depth
        try:
            yield
        finally:
            self._open_at = before

    def _set_handlers(self, found: list[Any]) -> None:
        own = self._note
        theirs = {number: each for number, each in zip(_NUMBERS, found, strict=True) if callable(each) and each != own}
        self._numbers, self._theirs, self._ours = list(theirs), list(theirs.values()), [own] * len(theirs)
        self._found = found

    def _keep(self, present: list[Any]) -> None:
        """Keep handlers that were set inside the block."""
        for number, handler in zip(self._numbers, present, strict=True):
            if handler != self._note:
                set_handler(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        now, handler = time.monotonic(), self._theirs[self._numbers.index(number)]
        is_overdue = number in self._waiting and now - self._since > _MAX_DELAY
        is_open = self._depth > 0 and self._depth == self._open_at
        if is_open or is_overdue:
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

    def reset_after_fork(self) -> None:
        """In a forked process: its only thread is the main one, and no block is active."""
        if get_ident() == self._main:
            return
        self._main = get_ident()
        self._waiting.clear()
        self._depth = min(self._depth, 1)
        self.__exit__()


INTERRUPTS = Interrupts()
"""One per process, as signals are."""

os.register_at_fork(after_in_child=INTERRUPTS.reset_after_fork)
