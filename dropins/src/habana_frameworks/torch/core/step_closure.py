"""Functions to call at the end of a graph, for example to print a loss."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

_waiting: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()


def add_step_closure(closure: Callable[..., object], args: tuple[Any, ...] = ()) -> None:
    """Call a function at the next mark_step; functions run in the order in which they were added."""
    _waiting.append((closure, args))


def run_waiting() -> None:
    """Call all waiting functions."""
    while _waiting:
        closure, args = _waiting.popleft()
        closure(*args)
