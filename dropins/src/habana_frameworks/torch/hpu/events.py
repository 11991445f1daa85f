"""Events: points in a stream, with their times by the host's clock."""

from __future__ import annotations

import time

from habana_frameworks._emulation import computing_device


class Event:
    """A point in a stream; with ``enable_timing`` its time is recorded."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        if interprocess:
            raise NotImplementedError("Events of the emulated hpu device cannot be shared between processes.")
        self._is_timed = enable_timing
        self._moment: float | None = None

    def record(self, stream: object = None) -> None:
        """Record the time when the work so far is done."""
        if self._is_timed:
            computing_device.synchronize()
        self._moment = time.perf_counter()

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds until another event, by the host's clock."""
        if not (self._is_timed and end_event._is_timed):
            raise RuntimeError("Both events must be made with enable_timing=True.")
        if self._moment is None or end_event._moment is None:
            raise RuntimeError("Record both events before you ask for the time between them.")
        return (end_event._moment - self._moment) * 1000

    def query(self) -> bool:
        """Wait for the work before the event, and return True."""
        computing_device.synchronize()
        return True

    def synchronize(self) -> None:
        """Wait for the work before the event."""
        computing_device.synchronize()

    def wait(self, stream: object = None) -> None:
        """Make a stream wait for the event, which has already happened."""
