"""Runs that are not reported to users: a comparison runs the same step again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_silent: ContextVar[bool] = ContextVar("pilotage_silent", default=False)


def is_silent() -> bool:
    """Whether this thread compares a program with eager PyTorch, so that operators should not print."""
    return _silent.get()


@contextmanager
def silence() -> Iterator[None]:
    """Let operators print nothing in the block; other threads still print."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)
