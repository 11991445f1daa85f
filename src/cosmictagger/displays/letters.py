"""Pictures for terminals with 256 colours: each letter shows two pixels, one above the other."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

import numpy as np

from cosmictagger.data.detector import COSMIC, NEUTRINO
from cosmictagger.data.events import Array
from cosmictagger.displays.rendering import pooled

_COLOURS = {0: 234, COSMIC: 75, NEUTRINO: 214}
"""Nearly those of our other pictures."""

_UPPER_HALF = "▀"
_GAP = "   "


def picture(classes: Array) -> list[str]:
    """The lines of a picture of cosmic and neutrino pixels."""
    rows = len(classes) + len(classes) % 2
    padded = np.zeros((rows, classes.shape[1]), np.uint8)
    padded[: len(classes)] = classes
    return [_line(upper, lower) for upper, lower in zip(padded[::2].tolist(), padded[1::2].tolist(), strict=True)]


def side_by_side(named: Mapping[str, Array], width: int) -> list[str]:
    """Pictures with their names above them, pooled until they fit beside each other."""
    most = max((width - len(_GAP) * (len(named) - 1)) // len(named), 1)
    parts = []
    for name, classes in named.items():
        small = pooled(classes, -(-classes.shape[1] // most))
        parts.append([name.ljust(small.shape[1]), *picture(small)])
    return [_GAP.join(lines).rstrip() for lines in zip(*parts, strict=True)]


def painted(kind: int, text: str) -> str:
    """Text in the colour of a class."""
    return f"\x1b[38;5;{_COLOURS[kind]}m{text}\x1b[0m"


def _line(upper: list[int], lower: list[int]) -> str:
    """Neighbours with the same colours share their control characters."""
    runs = ((pair, len(list(run))) for pair, run in groupby(zip(upper, lower, strict=True)))
    colours = ((f"\x1b[38;5;{_COLOURS[top]};48;5;{_COLOURS[low]}m", length) for (top, low), length in runs)
    return "".join(colour + _UPPER_HALF * length for colour, length in colours) + "\x1b[0m"
