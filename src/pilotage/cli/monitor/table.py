"""A table as a value, and how it is fitted into the width of a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

__all__ = ["Cell", "Column", "Table", "cut", "width_of"]

_BONE = 8
"""The width down to which a column is cut before it is left out."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A text, and what sort of thing it says, which decides its colour."""

    text: str
    sort: str = ""

    def __post_init__(self) -> None:
        # A command line may hold anything, and a terminal obeys some of it.
        shown = "".join(letter if letter.isprintable() else "?" for letter in self.text[:1000])
        object.__setattr__(self, "text", shown)


@dataclass(frozen=True, slots=True)
class Column:
    """A column, with its cells."""

    title: str
    group: str
    """What stands above this column and its neighbours of the same group."""

    cells: tuple[Cell, ...]
    rank: int = 100
    """In a narrow terminal the columns with the lowest ranks are left out."""

    least: int | None = None
    """The width down to which its cells may be cut while there are columns that matter less; None keeps them whole."""

    align: str = "^"
    width: int = 0

    @property
    def natural(self) -> int:
        """The width that shows everything."""
        return max(width_of(text) for text in (self.title, *(cell.text for cell in self.cells)))

    @property
    def smallest(self) -> int:
        """The width that it needs."""
        return self.natural if self.least is None else min(self.natural, max(self.least, width_of(self.title)))


@dataclass(frozen=True, slots=True)
class Table:
    """Columns side by side."""

    columns: tuple[Column, ...]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """What stands above the columns, and how wide it may be."""
        widths: dict[str, int] = {}
        for column in self.columns:
            widths[column.group] = widths.get(column.group, -3) + column.width + 3
        return list(widths.items())

    @property
    def rows(self) -> list[tuple[Cell, ...]]:
        """The cells, line by line."""
        return list(zip(*(column.cells for column in self.columns), strict=True))

    def fitted(self, width: int) -> Table:
        """The same table for a terminal of some width: columns that do not matter much are left out, long ones cut."""
        columns = list(self.columns)
        while len(columns) > 2 and _total([column.smallest for column in columns]) > width:
            place, last = min(enumerate(columns), key=lambda pair: pair[1].rank)
            # A column that can be cut is first cut to the bone.
            columns[place : place + 1] = [] if (last.least or 0) <= _BONE else [replace(last, least=_BONE)]
        table = Table(tuple(replace(column, width=column.smallest) for column in columns))._with_room(width)
        for number, column in enumerate(table.columns):
            table = table._widened(number, column.natural - column.width, width)
        return table

    def _with_room(self, width: int) -> Table:
        """Widen a column of each group whose title needs it, the one that would gain most; short titles come first."""
        table = self
        for group, room in sorted(self.groups, key=lambda pair: width_of(pair[0])):
            members = [number for number, column in enumerate(self.columns) if column.group == group]
            widest = max(members, key=lambda number: self.columns[number].natural - self.columns[number].width)
            table = table._widened(widest, width_of(group) - room, width)
        return table

    def _widened(self, number: int, wanted: int, width: int) -> Table:
        """One column wider by what is wanted, or by what the terminal has left."""
        spare = width - _total([column.width for column in self.columns])
        column = self.columns[number]
        wider = replace(column, width=column.width + max(0, min(wanted, spare)))
        return Table((*self.columns[:number], wider, *self.columns[number + 1 :]))


def width_of(text: str) -> int:
    """How many places a text takes in a terminal."""
    return sum(_places(letter) for letter in text)


def cut(text: str, width: int, sign: str) -> str:
    """As much of a text as has room, with a sign where something is missing."""
    if width_of(text) <= width:
        return text
    sign = sign[: max(0, width)]
    kept, taken = "", width_of(sign)
    for letter in text:
        taken += _places(letter)
        if taken > width:
            break
        kept += letter
    return kept + sign


def _places(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + 3 * len(widths) + 1
