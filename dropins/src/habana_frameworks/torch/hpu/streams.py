"""Streams and events. All work goes to one stream: on the processor it is done when it is asked for, and waiting is free."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from habana_frameworks._emulation import underneath
from habana_frameworks.torch.hpu.places import Device, check_device


class Event:
    """A moment in a stream; with ``enable_timing`` it is remembered when."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        if interprocess:
            raise NotImplementedError("Events of the emulated hpu device cannot be shared between processes.")
        self._is_timed = enable_timing
        self._moment: float | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Remember the moment when the work so far is done."""
        if self._is_timed:
            underneath.synchronize()
        self._moment = time.perf_counter()

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds until another event: the host's time."""
        if not (self._is_timed and end_event._is_timed):
            raise RuntimeError("Both events must be made with enable_timing=True.")
        if self._moment is None or end_event._moment is None:
            raise RuntimeError("Both events must be recorded before the time between them is asked for.")
        return (end_event._moment - self._moment) * 1000

    def query(self) -> bool:
        """Say whether the work before the event is done; it is waited for."""
        underneath.synchronize()
        return True

    def synchronize(self) -> None:
        """Wait for the work before the event."""
        underneath.synchronize()

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream wait for the event, which has happened."""


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
        """Wait for an event, which has happened."""

    def wait_stream(self, stream: Stream) -> None:
        """Wait for another stream, whose work is done."""

    def synchronize(self) -> None:
        """Wait for the work of the stream."""
        underneath.synchronize()

    def query(self) -> bool:
        """Say whether all work is done; it is waited for."""
        underneath.synchronize()
        return True


_default = Stream()
_current = [_default]


def default_stream(device: Device = None) -> Stream:
    """Return the stream that work goes to unless another is chosen."""
    check_device(device)
    return _default


def current_stream(device: Device = None) -> Stream:
    """Return the stream that work goes to now."""
    check_device(device)
    return _current[-1]


@contextlib.contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """Choose a stream for a while."""
    _current.append(stream or _current[-1])
    try:
        yield
    finally:
        _current.pop()
