"""Tracepoints: named spans of time, for torch's profiler and, where PVTI_OPTIONS is set, in a file."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any, TypeVar

import torch

from poptorch._observation.trace_file import trace_file

__all__ = ["Channel"]

Instrumented = TypeVar("Instrumented")

_UNSEEN = nullcontext()


class Channel:
    """A named group of tracepoints; where nobody looks they cost next to nothing."""

    def __init__(self, name: str) -> None:
        self.name = name
        # Whether a file is wanted is known by the time a channel is made; asking the environment at each call costs.
        self._may_be_traced = trace_file() is not None

    def instrument(self, obj: Instrumented, *methods: str) -> Instrumented:
        """Put a tracepoint around each of these methods of an object, and return the object."""
        for method in methods:
            setattr(obj, method, self._traced(getattr(obj, method), method))
        return obj

    def tracepoint(self, name: str) -> AbstractContextManager[object]:
        """Show the time of this block under a name."""
        # Asked for again: a process that was forked meanwhile writes a file of its own.
        file = trace_file() if self._may_be_traced else None
        is_profiled = torch._C._autograd._profiler_enabled()
        if file is None and not is_profiled:
            return _UNSEEN
        stack = ExitStack()
        if is_profiled:
            stack.enter_context(torch.profiler.record_function(f"{self.name}: {name}"))
        if file is not None:
            stack.enter_context(file.tracepoint(self.name, name))
        return stack

    def _traced(self, function: Any, name: str) -> Any:
        @functools.wraps(function)
        def traced(*args: Any, **kwargs: Any) -> Any:
            with self.tracepoint(name):
                return function(*args, **kwargs)

        return traced
