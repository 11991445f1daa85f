"""Events of the emulated bridge, for metrics and other subscribers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import cache

Parameters = Sequence[tuple[str, str]]
"""Names and texts that describe an event."""

Subscriber = Callable[[int, Parameters], object]
"""Called with the time in nanoseconds and the parameters."""


class EventId(Enum):
    """Kinds of events."""

    GRAPH_COMPILATION = auto()
    CPU_FALLBACK = auto()
    CACHE_HIT = auto()
    CACHE_MISS = auto()
    MEMORY_DEFRAGMENTATION = auto()
    MARK_STEP = auto()
    PROCESS_EXIT = auto()
    DEVICE_ACQUIRED = auto()
    CUSTOM_EVENT = auto()


class EventDispatcher:
    """Passes events to their subscribers."""

    def __init__(self) -> None:
        self._subscribers: dict[int, tuple[EventId, Subscriber]] = {}
        self._next = 0

    @staticmethod
    def instance() -> EventDispatcher:
        """Return the dispatcher of this process."""
        return _dispatcher()

    def subscribe(self, event_id: EventId, callback: Subscriber) -> int:
        """Call a function for each event of a kind; return a handle to unsubscribe it."""
        self._next += 1
        self._subscribers[self._next] = event_id, callback
        return self._next

    def unsubscribe(self, handle: int) -> None:
        """End a subscription; one that has ended already is ignored."""
        self._subscribers.pop(handle, None)

    def publish(self, event_id: EventId, params: Parameters = ()) -> None:
        """Call the subscribers of a kind of events."""
        for wanted, callback in tuple(self._subscribers.values()):
            if wanted is event_id:
                callback(time.time_ns(), params)


@cache
def _dispatcher() -> EventDispatcher:
    return EventDispatcher()


def publish(event_id: EventId, **params: object) -> None:
    """Publish an event of this process."""
    _dispatcher().publish(event_id, [(name, str(value)) for name, value in params.items()])
