"""Streams and events. All work goes to one stream; on the CPU it is done at once, and waiting is free."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from habana_frameworks._emulation import computing_device
from habana_frameworks.torch.hpu.device_argument import Device, check_device


class Event:
    """A point in a stream; with ``enable_timing`` its time is recorded."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        if interprocess:
            raise NotImplementedError("Events of the emulated hpu device cannot be shared between processes.")
        self._is_timed = enable_timing
        self._moment: float | None = None

    def record(self, stream: Stream | None = None) -> None:
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

    def wait(self, stream: Stream | None = None) -> None:
        """Make a stream wait for the event, which has already happened."""


class Stream:
    """A queue of work on the card."""

    def __init__(self, device: Device = None, priority: int = 0) -> None:
        check_device(device)
        self.priority = priority

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event at this point."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Wait for an event, which has already happened."""

    def wait_stream(self, stream: Stream) -> None:
        """Wait for another stream, whose work is already done."""

    def synchronize(self) -> None:
        """Wait for the work of the stream."""
        computing_device.synchronize()

    def query(self) -> bool:
        """Wait for all work, and return True."""
        computing_device.synchronize()
        return True


_default = Stream()
_current = [_default]


def default_stream(device: Device = None) -> Stream:
    """Return the default stream."""
    check_device(device)
    return _default


def current_stream(device: Device = None) -> Stream:
    """Return the current stream."""
    check_device(device)
    return _current[-1]


@contextlib.contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """Set the current stream within a block."""
    _current.append(stream or _current[-1])
    try:
        yield
    finally:
        _current.pop()
