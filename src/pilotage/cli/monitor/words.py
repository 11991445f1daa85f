"""Numbers and times as a screen shows them."""

from __future__ import annotations

from pilotage.monitoring.announcement import Activity
from pilotage.monitoring.survey import AttachedProgram

__all__ = ["duration", "memory", "pace", "reading"]

_GIBIBYTE = 2**30


def reading(value: float | None, unit: str) -> str:
    """What a sensor says, N/A where it says nothing."""
    return "N/A" if value is None else f"{value:.0f}{unit}"


def memory(used: int | None, total: int | None) -> str:
    """Memory in use, and all of it."""
    if used is None or total is None:
        return "N/A"
    return f"{used / _GIBIBYTE:.1f} / {total / _GIBIBYTE:.1f} GiB"


def duration(seconds: float) -> str:
    """A time in its two largest units."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole // 60 % 60:02d}m"
    return f"{whole // 86400}d{whole // 3600 % 24:02d}h"


def pace(program: AttachedProgram) -> str:
    """Steps per second, or what the program does instead."""
    if program.activity is Activity.RUNNING and program.announcement.rate is not None:
        return rate(program.announcement.rate)
    return "first call" if program.activity is Activity.STARTING else program.activity.value


def rate(value: float) -> str:
    """A rate with about three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
