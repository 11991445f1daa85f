"""Functions to call at the end of a graph, for example to print a loss."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from habana_frameworks._emulation import lazy
from pilotage.engine import Warned, log_event

_waiting: list[tuple[Callable[..., object], tuple[Any, ...]]] = []


def add_step_closure(closure: Callable[..., object], args: tuple[Any, ...] = ()) -> None:
    """Call a function at the next mark_step of lazy mode; eager mode drops it, as the vendor's bridge does."""
    if lazy.mode() == "lazy":
        _waiting.append((closure, args))
    else:
        _say_that_it_is_dropped()


def run_waiting() -> None:
    """Call the waiting functions in the order in which they were added; those that they add wait for the next mark."""
    calls = _waiting[:]
    _waiting.clear()
    for closure, args in calls:
        closure(*args)


def _mark_step_if_lazy(device_str: str = "") -> None:
    """mark_step in lazy mode, else nothing."""
    from habana_frameworks.torch.core import mark_step

    mark_step(device_str)


@cache
def _say_that_it_is_dropped() -> None:
    message = "add_step_closure: eager mode never calls these functions. Use PT_HPU_LAZY_MODE=1, or call them yourself."
    log_event(Warned(message=message))
