"""Tracepoints: named spans of time, for torch's profiler and, if PVTI_OPTIONS is set, in a file."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any, TypeVar

import torch

from pilotage.engine import is_profiler_enabled
from poptorch._observation.trace_file import trace_file

__all__ = ["Channel"]

Instrumented = TypeVar("Instrumented")

_UNSEEN = nullcontext()


class Channel:
    """A named group of tracepoints; they cost next to nothing unless they are recorded."""

    def __init__(self, name: str) -> None:
        self.name = name
        # Decided once: reading the environment at each call is slow.
        self.may_be_traced = trace_file() is not None

    def instrument(self, obj: Instrumented, *methods: str) -> Instrumented:
        """Put a tracepoint around each of these methods of an object, and return the object."""
        for method in methods:
            setattr(obj, method, self._traced(getattr(obj, method), method))
        return obj

    def tracepoint(self, name: str) -> AbstractContextManager[object]:
        """Record the time of this block under a name."""
        # Looked up again, since a process forked in the meantime writes its own file.
        file = trace_file() if self.may_be_traced else None
        is_profiled = is_profiler_enabled()
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
