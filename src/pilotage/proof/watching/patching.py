"""Replace functions of other packages in this process by ones that also report."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["replace_function"]


def replace_function(owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replace a function of a module or class by the result of ``make``; a missing name is left out."""
    original = owner.__dict__.get(name) if isinstance(owner, type) else getattr(owner, name, None)
    if callable(original):
        setattr(owner, name, functools.wraps(original)(make(original)))
