"""Read the kernel's small text files, any of which may be missing."""

from __future__ import annotations

from pathlib import Path


def text_of(path: Path) -> str:
    """The text of a file without surrounding whitespace; empty if it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def field_of(description: str, key: str) -> str:
    """The value of a ``key: value`` line; empty if there is no such line."""
    return next(iter(fields_of(description, key)), "")


def fields_of(description: str, key: str) -> list[str]:
    """The values of all ``key: value`` lines with this key."""
    pairs = (line.partition(":") for line in description.splitlines())
    return [value.strip() for name, _, value in pairs if name.strip() == key]


def number_of(text: str) -> float | None:
    """The text as a number; None if it is not one."""
    try:
        return float(text)
    except ValueError:
        return None
