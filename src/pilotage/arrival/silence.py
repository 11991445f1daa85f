"""Runs that users should not see: a comparison runs the same step again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_depth = 0


def is_silent() -> bool:
    """Whether a comparison with eager PyTorch is running, so that operators should not print."""
    return _depth > 0


@contextmanager
def silence() -> Iterator[None]:
    """Let operators print nothing in the block, whichever thread runs them."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
