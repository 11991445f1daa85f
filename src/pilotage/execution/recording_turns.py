"""Excludes other calls while a CUDA graph is recorded.

Another thread that allocates, copies or synchronises on the card would invalidate the recording. So calls run
concurrently, and nothing runs beside a recording.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock, get_ident

from pilotage.interrupts import INTERRUPTS

_LOOK_AROUND = 0.05
"""Seconds after which a waiting thread handles signals."""

_SOON = 0.001
"""Seconds between two checks for calls that are still running."""


class RecordingTurns:
    """A lock that admits many calls, or one recording."""

    def __init__(self) -> None:
        self.inside: set[int] = set()
        """The threads that run a call. Discarding one at the end of its call cannot be interrupted halfway."""
        self._is_recording = False
        self._recorder = Lock()

    def enter(self) -> None:
        """Begin a call once nothing is being recorded; `inside.discard(get_ident())` ends it."""
        self.inside.add(get_ident())
        if self._is_recording:
            self._wait()

    @contextmanager
    def call(self) -> Iterator[None]:
        """Run concurrently with other calls, but not during a recording."""
        try:
            self.enter()
            yield
        finally:
            self.inside.discard(get_ident())

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record inside a call, once all other calls have ended."""
        # Otherwise a thread that is about to record would wait for this call.
        self.inside.discard(get_ident())
        while not self._recorder.acquire(timeout=_LOOK_AROUND):
            INTERRUPTS.deliver_pending()
        try:
            self._is_recording = True
            self._wait_for_calls()
            yield
        finally:
            self._is_recording = False
            self._recorder.release()
            self.enter()

    def _wait(self) -> None:
        while self._is_recording:
            self.inside.discard(get_ident())
            if self._recorder.acquire(timeout=_LOOK_AROUND):
                self._recorder.release()
            else:
                INTERRUPTS.deliver_pending()
            self.inside.add(get_ident())

    def _wait_for_calls(self) -> None:
        pause = Event()
        while self.inside:
            pause.wait(_SOON)


RECORDING = RecordingTurns()
"""Shared by the process: so are its cards."""
