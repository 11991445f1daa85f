"""Functions that wait for the end of a graph, such as the printing of a loss."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

_waiting: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()


def add_step_closure(closure: Callable[..., object], args: tuple[Any, ...] = ()) -> None:
    """Call a function at the next mark_step, in the order in which they were added."""
    _waiting.append((closure, args))


def run_waiting() -> None:
    """Call what waits."""
    while _waiting:
        closure, args = _waiting.popleft()
        closure(*args)
