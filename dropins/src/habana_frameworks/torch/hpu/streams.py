"""Streams. All work goes to one stream; on the CPU it is done at once, and waiting is free."""

from __future__ import annotations

import itertools
from types import TracebackType

from torch import Tensor

from habana_frameworks._emulation import computing_device
from habana_frameworks.torch.hpu.device_argument import Device, check_device
from habana_frameworks.torch.hpu.events import Event as Event

_numbers = itertools.count(1)
_DEVICE_TYPE = 6
"""The number of hpu among torch's device types."""


class Stream:
    """A queue of work on the card."""

    def __init__(
        self,
        device: Device = None,
        priority: int = 0,
        *,
        stream_id: int | None = None,
        device_index: int = 0,
        device_type: int = _DEVICE_TYPE,
        stream_ptr: int = 0,
    ) -> None:
        check_device(device)
        check_device(device_index)
        self.priority = priority
        self.stream_id = next(_numbers) if stream_id is None else stream_id
        self.device_index, self.device_type = device_index, device_type
        self.hpu_stream = stream_ptr or self.stream_id

    def id(self) -> int:
        """Return the number of the stream; the default stream is 0."""
        return self.stream_id

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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.stream_id == other.stream_id

    def __hash__(self) -> int:
        return hash((Stream, self.stream_id))

    def __repr__(self) -> str:
        return f"<torch.hpu.Stream id={self.stream_id} device=hpu:{self.device_index}>"


_current = [Stream(stream_id=0)]


def default_stream(device: Device = None) -> Stream:
    """Return the default stream."""
    check_device(device)
    return Stream(stream_id=0)


def current_stream(device: Device = None) -> Stream:
    """Return the current stream."""
    check_device(device)
    return _current[-1]


def set_stream(stream: Stream | None) -> None:
    """Make a stream the current one; None changes nothing."""
    if stream is not None:
        _current[-1] = stream


class StreamContext:
    """Set the current stream within a block; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        _current.append(self.stream or _current[-1])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.pop()


def stream(stream: Stream | None) -> StreamContext:
    """Set the current stream within a block."""
    return StreamContext(stream)


def get_stream_info(stream: Stream) -> tuple[int, int, int]:
    """Return the number of a stream, the index of its card and the number of the device type."""
    return stream.stream_id, stream.device_index, stream.device_type


def record_stream(tensor: Tensor, stream: Stream) -> None:
    """Keep the memory of a tensor until a stream is done with it, which is when it is used here."""
