"""Tracepoints: named spans of time, shown by torch's profiler where PopTorch had PopVision's system analyser."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import torch

__all__ = ["Channel"]

Instrumented = TypeVar("Instrumented")


class Channel:
    """A named group of tracepoints; without a running profiler they cost next to nothing."""

    def __init__(self, name: str) -> None:
        self.name = name

    def instrument(self, obj: Instrumented, *methods: str) -> Instrumented:
        """Put a tracepoint around each of these methods of an object, and return the object."""
        for method in methods:
            setattr(obj, method, self._traced(getattr(obj, method), method))
        return obj

    def tracepoint(self, name: str) -> AbstractContextManager[object]:
        """Show the time of this block under a name."""
        if not torch._C._autograd._profiler_enabled():
            return nullcontext()
        return torch.profiler.record_function(f"{self.name}: {name}")

    def _traced(self, function: Any, name: str) -> Any:
        @functools.wraps(function)
        def traced(*args: Any, **kwargs: Any) -> Any:
            with self.tracepoint(name):
                return function(*args, **kwargs)

        return traced
