"""Numbers, sizes and times as the screens of the commands show them."""

from __future__ import annotations

__all__ = ["format_age", "format_duration", "format_memory", "format_rate", "format_reading", "format_size"]

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_GIBIBYTE = 2**30


def format_size(count: int) -> str:
    """``512 B``, ``1.5 MiB``."""
    value = float(count)
    for unit in _UNITS[:-1]:
        if value < 1024:
            is_whole = value >= 100 or unit == "B" or value == int(value)
            return f"{value:.0f} {unit}" if is_whole else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} {_UNITS[-1]}"


def format_age(seconds: float) -> str:
    """``5 min ago``, ``12 d ago``."""
    if seconds < 60:
        return "just now"
    for limit, unit, length in ((3600, "min", 60), (2 * 86400, "h", 3600)):
        if seconds < limit:
            return f"{int(seconds // length)} {unit} ago"
    return f"{int(seconds // 86400)} d ago"


def format_duration(seconds: float) -> str:
    """``13s``, ``3h12m``: at most two units."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole // 60 % 60:02d}m"
    return f"{whole // 86400}d{whole // 3600 % 24:02d}h"


def format_rate(value: float) -> str:
    """``37.5``: about three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def format_reading(value: float | None, unit: str) -> str:
    """``61C``, or ``N/A`` if the sensor reports nothing."""
    return "N/A" if value is None else f"{value:.0f}{unit}"


def format_memory(used: int | None, total: int | None) -> str:
    """``1.0 / 2.0 GiB``, or ``N/A`` if either number is unknown."""
    if used is None or total is None:
        return "N/A"
    return f"{used / _GIBIBYTE:.1f} / {total / _GIBIBYTE:.1f} GiB"
