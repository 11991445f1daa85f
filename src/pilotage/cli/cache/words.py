"""Sizes and times as the cache's screen shows them."""

from __future__ import annotations

__all__ = ["age", "size"]

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size(count: int) -> str:
    """``512 B``, ``1.5 MiB``."""
    value = float(count)
    for unit in _UNITS[:-1]:
        if value < 1024:
            return (
                f"{value:.0f} {unit}" if value >= 100 or unit == "B" or value == int(value) else f"{value:.1f} {unit}"
            )
        value /= 1024
    return f"{value:.1f} {_UNITS[-1]}"


def age(seconds: float) -> str:
    """``5 min ago``, ``12 d ago``."""
    if seconds < 60:
        return "just now"
    for limit, unit, length in ((3600, "min", 60), (2 * 86400, "h", 3600)):
        if seconds < limit:
            return f"{int(seconds // length)} {unit} ago"
    return f"{int(seconds // 86400)} d ago"
