"""Pictures made of letters, for terminals: each letter of braille has two by four dots."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from cosmictagger.data.detector import COSMIC, NEUTRINO
from cosmictagger.data.events import Array
from cosmictagger.displays.rendering import pooled

_ROWS, _COLUMNS = 4, 2
_EMPTY = 0x2800
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""The bit of each dot in a letter."""

_COLOURS = {COSMIC: "38;5;75", NEUTRINO: "38;5;214"}
"""Of terminals with 256 colours: nearly those of our other pictures."""

_GAP = "   "


def picture(classes: Array, *, coloured: bool = True) -> list[str]:
    """The lines of a picture of cosmic and neutrino pixels; a letter that has both takes the neutrino's colour."""
    rows, columns = (-(-side // step) for side, step in zip(classes.shape, (_ROWS, _COLUMNS), strict=True))
    padded = np.zeros((rows * _ROWS, columns * _COLUMNS), np.uint8)
    padded[: classes.shape[0], : classes.shape[1]] = classes
    cells = padded.reshape(rows, _ROWS, columns, _COLUMNS)
    dots = ((cells > 0) * _DOTS[:, None, :]).sum((1, 3))
    kinds = cells.max((1, 3))
    return [_line(*row, coloured=coloured) for row in zip(dots.tolist(), kinds.tolist(), strict=True)]


def side_by_side(named: dict[str, Array], width: int, *, coloured: bool = True) -> list[str]:
    """Pictures with their names above them, pooled until they fit beside each other."""
    most = (width - len(_GAP) * (len(named) - 1)) // len(named)
    parts = []
    for name, classes in named.items():
        small = pooled(classes, -(-classes.shape[1] // (_COLUMNS * max(most, 1))))
        length = -(-small.shape[1] // _COLUMNS)
        parts.append([name.ljust(length), *picture(small, coloured=coloured)])
    return [_GAP.join(lines).rstrip() for lines in zip(*parts, strict=True)]


def _line(dots: list[int], kinds: list[int], *, coloured: bool) -> str:
    letters = zip(kinds, (chr(_EMPTY + each) for each in dots), strict=True)
    parts = [(kind, "".join(letter for _, letter in run)) for kind, run in groupby(letters, key=lambda each: each[0])]
    return "".join(painted(kind, text) if coloured else text for kind, text in parts)


def painted(kind: int, text: str) -> str:
    """Text in the colour of a class."""
    return f"\x1b[{_COLOURS[kind]}m{text}\x1b[0m" if kind in _COLOURS else text
