"""What the kernel says in small text files, of which any may be missing."""

from __future__ import annotations

from pathlib import Path


def text_of(path: Path) -> str:
    """What a file says, without the spaces around it; empty where it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def field_of(description: str, key: str) -> str:
    """What stands behind a key and its colon; empty where there is no such line."""
    return next(iter(fields_of(description, key)), "")


def fields_of(description: str, key: str) -> list[str]:
    """What stands behind a key, in each line that has it."""
    pairs = (line.partition(":") for line in description.splitlines())
    return [value.strip() for name, _, value in pairs if name.strip() == key]


def number_of(text: str) -> float | None:
    """A number in a text; None where it is none."""
    try:
        return float(text)
    except ValueError:
        return None
