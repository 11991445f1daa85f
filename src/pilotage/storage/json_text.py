"""Plain data as JSON, with limits for reading and writing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

MAXIMUM_TEXT = 64 * 2**20
"""Bytes of JSON in one file; a program with 5,800 operations has 1.5 MB."""

MAXIMUM_VALUES = 4_000_000
"""Numbers, strings, lists and so on in one text; each takes up to 80 bytes of memory."""

MAXIMUM_DEPTH = 100
"""The depth of nested lists."""


def to_text(data: Any) -> str:
    """Plain data as JSON; raises a ValueError if it exceeds the limits for reading."""
    text = json.dumps(data)
    _check_size(text.encode())
    _check_depth(data)
    return text


def from_text(text: bytes | str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """The plain data of a JSON text; raises a ValueError if it is invalid or exceeds a limit."""
    _check_size(text.encode() if isinstance(text, str) else text)
    try:
        data = json.loads(text, object_pairs_hook=pairs)
    except RecursionError:
        raise ValueError(f"its data is nested more than {MAXIMUM_DEPTH} deep") from None
    _check_depth(data)
    return data


def without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A dictionary without duplicate keys; for `from_text`."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("it contains a name twice")
    return found


def _check_size(text: bytes) -> None:
    if len(text) > MAXIMUM_TEXT:
        raise ValueError(f"its plain data has {len(text):,} bytes; at most {MAXIMUM_TEXT:,} are allowed")
    values = sum(text.count(mark) for mark in (b",", b"[", b"{", b":"))
    if values > MAXIMUM_VALUES:
        raise ValueError(f"its plain data has {values:,} values; at most {MAXIMUM_VALUES:,} are allowed")


def _check_depth(data: Any) -> None:
    level = [data]
    for _ in range(MAXIMUM_DEPTH + 1):
        level = [each for one in level for each in _inside(one)]
        if not level:
            return
    raise ValueError(f"its data is nested more than {MAXIMUM_DEPTH} deep")


def _inside(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, (list, tuple)) else ()
