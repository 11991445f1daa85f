"""Sizes and durations as people write them: ``10GiB``, ``90d``."""

from __future__ import annotations

import re

from pilotage.errors import OptionError

_NUMBER = re.compile(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*([a-zA-Z]+)\s*", re.ASCII)
_SIZES = {
    "B": 1,
    **{unit: 1000**power for power, unit in enumerate(("KB", "MB", "GB", "TB"), 1)},
    **{unit: 1024**power for power, unit in enumerate(("KIB", "MIB", "GIB", "TIB"), 1)},
}
_DURATIONS = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def size(text: str, name: str, otherwise: str = "") -> int:
    """Parse a size in bytes; errors mention ``name``, and end with ``otherwise``."""
    match = _NUMBER.fullmatch(text)
    if match is None or match[2].upper() not in _SIZES or float(match[1]) == 0:
        raise OptionError(
            f"{name} is {text!r}. Write a size above zero with its unit, such as 500MB or 10GiB "
            f"(B, KB, MB, GB, TB, KiB, MiB, GiB or TiB){otherwise}."
        )
    return int(float(match[1]) * _SIZES[match[2].upper()])


def duration(text: str, name: str, otherwise: str = "") -> float:
    """Parse a duration in seconds; errors mention ``name``, and end with ``otherwise``."""
    match = _NUMBER.fullmatch(text)
    if match is None or match[2].lower() not in _DURATIONS:
        raise OptionError(
            f"{name} is {text!r}. Write a duration with its unit, such as 12h or 30d (s, min, h, d or w){otherwise}."
        )
    return float(match[1]) * _DURATIONS[match[2].lower()]
