"""Recordings of CUDA graphs, which nothing else in the process may disturb.

While one thread records, another one that allocates, copies or synchronises on the card invalidates the recording. So calls
run side by side, and a recording has the card to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition

from pilotage.interrupts import INTERRUPTS

_LOOK_AROUND = 0.05


class RecordingTurns:
    """Many calls at once, or one recording."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._calls = 0
        self._is_recording = False

    @contextmanager
    def call(self) -> Iterator[None]:
        """Run beside other calls, and beside no recording."""
        with INTERRUPTS:
            self._wait(lambda: not self._is_recording, begin=lambda: self._count(1))
            try:
                yield
            finally:
                self._end(lambda: self._count(-1))

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record in the middle of a call, once all others have ended."""
        self._wait(lambda: not self._is_recording, begin=self._begin_recording)
        try:
            self._wait(lambda: self._calls == 0)
            yield
        finally:
            self._end(self._end_recording)

    def _count(self, change: int) -> None:
        self._calls += change

    def _begin_recording(self) -> None:
        self._is_recording = True
        self._calls -= 1

    def _end_recording(self) -> None:
        self._is_recording = False
        self._calls += 1

    def _wait(self, is_free: Callable[[], bool], begin: Callable[[], None] = lambda: None) -> None:
        while True:
            with self._changed:
                if is_free() or self._changed.wait_for(is_free, _LOOK_AROUND):
                    begin()
                    return
            INTERRUPTS.let_in()

    def _end(self, end: Callable[[], None]) -> None:
        with self._changed:
            end()
            self._changed.notify_all()


RECORDING = RecordingTurns()
"""A card is the process's, and so are the recordings on it."""
