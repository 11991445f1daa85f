"""Channels, tracepoints and graphs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from poptorch._observation.trace_file import trace_file
from poptorch.profiling import Channel

__all__ = [
    "Graph",
    "GraphSeries",
    "Tracepoint",
    "createTraceChannel",
    "instrument",
    "instrument_fn",
    "isEnabled",
]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_open: dict[tuple[str, str], list[AbstractContextManager[object]]] = {}
"""Tracepoints that `Tracepoint.begin` has opened, by channel and label."""


def createTraceChannel(name: str) -> Channel:
    """A named group of tracepoints."""
    return Channel(name)


def isEnabled() -> bool:
    """Whether PVTI_OPTIONS asks for a file of tracepoints."""
    return trace_file() is not None


class Tracepoint:
    """A span of time: a ``with`` block, or what happens between `begin` and `end`."""

    def __init__(self, channel: Channel, label: str) -> None:
        self._span = _checked(channel).tracepoint(label)

    def __enter__(self) -> Self:
        self._span.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._span.__exit__(kind, error, traceback)

    @staticmethod
    def begin(channel: Channel, label: str) -> None:
        """Begin a span, until `end` is called for the same channel and label."""
        span = _checked(channel).tracepoint(label)
        span.__enter__()
        _open.setdefault((channel.name, label), []).append(span)

    @staticmethod
    def end(channel: Channel, label: str) -> None:
        """End the span that was begun last for this channel and label."""
        spans = _open.get((_checked(channel).name, label))
        if not spans:
            raise ValueError(
                f"No tracepoint {label!r} of the channel {channel.name!r} is open. Call Tracepoint.begin first."
            )
        spans.pop().__exit__(None, None, None)

    @staticmethod
    def event(channel: Channel, label: str) -> None:
        """Record a moment."""
        with _checked(channel).tracepoint(label):
            pass


def instrument_fn(channel: Channel) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """A decorator that puts a tracepoint around each call of a function."""

    def decorate(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        @functools.wraps(function)
        def traced(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            with _checked(channel).tracepoint(function.__qualname__):
                return function(*args, **kwargs)

        return traced

    return decorate


def instrument(obj: Any, methods: Iterable[str], channel: Channel) -> Any:
    """Put a tracepoint around these methods of an object, and return the object."""
    return _checked(channel).instrument(obj, *methods)


class GraphSeries:
    """One line of a graph."""

    def __init__(self, graph: Graph, label: str) -> None:
        self._graph = graph
        self._label = label

    def add(self, value: float) -> None:
        """Add the present value."""
        file = trace_file()
        if file is not None:
            file.count(self._graph.name, self._label, float(value))


class Graph:
    """Lines of values over time."""

    def __init__(self, name: str, unit: str = "") -> None:
        self.name = f"{name} [{unit}]" if unit else name

    def addSeries(self, label: str) -> GraphSeries:
        """A new line of this graph."""
        return GraphSeries(self, label)


def _checked(channel: Channel) -> Channel:
    if not isinstance(channel, Channel):
        raise TypeError(f"The channel is {channel!r}. Make one with libpvti.createTraceChannel(name).")
    return channel
