"""Recordings of CUDA graphs, which nothing else in the process may disturb.

While one thread records, another one that allocates, copies or synchronises on the card invalidates the recording. So
calls run side by side, and a recording has the card to itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock, get_ident

from pilotage.interrupts import INTERRUPTS

_LOOK_AROUND = 0.05
"""Seconds after which a thread that waits lets signals in."""

_SOON = 0.001
"""Seconds between two looks at calls that have yet to end."""


class RecordingTurns:
    """Many calls at once, or one recording."""

    def __init__(self) -> None:
        self.inside: set[int] = set()
        """The threads that run a call. Discarding one at the end of its call cannot be interrupted halfway."""
        self._is_recording = False
        self._recorder = Lock()

    def enter(self) -> None:
        """Begin a call beside others, once no recording is under way; `inside.discard(get_ident())` ends it."""
        self.inside.add(get_ident())
        if self._is_recording:
            self._wait()

    @contextmanager
    def call(self) -> Iterator[None]:
        """Run beside other calls, and beside no recording."""
        try:
            self.enter()
            yield
        finally:
            self.inside.discard(get_ident())

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record in the middle of a call, once all others have ended."""
        # Whoever records at present waits for this call otherwise.
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
"""A card is the process's, and so are the recordings on it."""
