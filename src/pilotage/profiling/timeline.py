"""The timeline of the host's activities."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pilotage.prediction.document import HostEntry

__all__ = ["UPDATES", "HostTimeline"]

UPDATES = "updates"
"""The track of the measured updates; the page draws predicted ones beside them."""

_MOST_ENTRIES = 20_000


class HostTimeline:
    """Collects activities of this process, from the first measured update on."""

    def __init__(self) -> None:
        self._start: float | None = None
        self._entries: list[HostEntry] = []

    def begin(self) -> None:
        """Start recording."""
        if self._start is None:
            self._start = time.perf_counter()

    @contextmanager
    def activity(self, name: str) -> Iterator[None]:
        """Record the block as an activity, on the track of the present thread."""
        start = time.perf_counter()
        try:
            yield
        finally:
            thread = threading.current_thread()
            track = "main thread" if thread is threading.main_thread() else thread.name
            self.note(track, name, start, time.perf_counter())

    def note(self, track: str, name: str, start: float, end: float) -> None:
        """Record an activity between two times of the performance counter."""
        if self._start is None or end <= self._start or len(self._entries) >= _MOST_ENTRIES:
            return
        first = max(start, self._start) - self._start
        self._entries.append(HostEntry(track=track, name=name, start=first, end=max(first, end - self._start)))

    @property
    def entries(self) -> tuple[HostEntry, ...]:
        """All activities, in the order of their starts."""
        return tuple(sorted(self._entries, key=lambda entry: entry.start))

    def seconds_of(self, name: str, until: float) -> float:
        """The time of activities with a name that began before a moment of the timeline."""
        return sum(entry.end - entry.start for entry in self._entries if entry.name == name and entry.start < until)
