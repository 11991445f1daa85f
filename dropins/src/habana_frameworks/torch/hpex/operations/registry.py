"""Registers operations in the vendor's namespace."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

Operations = tuple[tuple[str, Callable[..., Any]], ...]
"""Schemas, and the functions that implement them."""


@cache
def _library() -> torch.library.Library:
    # An operation exists as long as this object does.
    return torch.library.Library("hpu", "FRAGMENT")


def register(schema: str, function: Callable[..., Any]) -> None:
    """Offer a function as ``torch.ops.hpu.NAME``; gradients are those of the operations in it."""
    _library().define(schema)
    _library().impl(schema.partition("(")[0], function, "CompositeImplicitAutograd")
