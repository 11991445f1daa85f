"""Replaces an attribute temporarily."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["replaced"]


@contextmanager
def replaced(owner: Any, name: str, new: Any) -> Iterator[None]:
    """While active, an attribute of a module, a class or an object has another value."""
    before = getattr(owner, name)
    setattr(owner, name, new)
    try:
        yield
    finally:
        setattr(owner, name, before)
