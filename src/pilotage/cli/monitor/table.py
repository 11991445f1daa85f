"""A table as a value, and how to fit it to the width of a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

__all__ = ["Cell", "Column", "Table", "cut", "width_of"]

_MIN_WIDTH = 8
"""The width to which a column is cut before it is left out."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A text, and the name of its style."""

    text: str
    style: str = ""

    def __post_init__(self) -> None:
        # A command line may contain control characters, which a terminal would execute.
        shown = "".join(letter if letter.isprintable() else "?" for letter in self.text[:1000])
        object.__setattr__(self, "text", shown)


@dataclass(frozen=True, slots=True)
class Column:
    """A column and its cells."""

    title: str
    group: str
    """The heading above this column and its neighbours of the same group."""

    cells: tuple[Cell, ...]
    rank: int = 100
    """A narrow terminal leaves out the columns with the lowest ranks."""

    least: int | None = None
    """The width to which cells may be cut before other columns are left out; None never cuts them."""

    align: str = "^"
    width: int = 0

    @property
    def natural(self) -> int:
        """The width that shows all cells uncut."""
        return max(width_of(text) for text in (self.title, *(cell.text for cell in self.cells)))

    @property
    def smallest(self) -> int:
        """The smallest width that is allowed."""
        return self.natural if self.least is None else min(self.natural, max(self.least, width_of(self.title)))


@dataclass(frozen=True, slots=True)
class Table:
    """Columns side by side."""

    columns: tuple[Column, ...]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The headings of the groups, and their widths."""
        widths: dict[str, int] = {}
        for column in self.columns:
            widths[column.group] = widths.get(column.group, -3) + column.width + 3
        return list(widths.items())

    @property
    def rows(self) -> list[tuple[Cell, ...]]:
        """The cells, row by row."""
        return list(zip(*(column.cells for column in self.columns), strict=True))

    def fitted(self, width: int) -> Table:
        """The table for a terminal of this width: less important columns are left out, long cells cut."""
        columns = list(self.columns)
        while len(columns) > 2 and _total([column.smallest for column in columns]) > width:
            place, last = min(enumerate(columns), key=lambda pair: pair[1].rank)
            # A column that can be cut is cut as far as possible before it is left out.
            columns[place : place + 1] = [] if (last.least or 0) <= _MIN_WIDTH else [replace(last, least=_MIN_WIDTH)]
        table = Table(tuple(replace(column, width=column.smallest) for column in columns))._with_room(width)
        for number, column in enumerate(table.columns):
            table = table._widened(number, column.natural - column.width, width)
        return table

    def _with_room(self, width: int) -> Table:
        """Widen one column of each group whose heading needs more room; short headings first."""
        table = self
        for group, room in sorted(self.groups, key=lambda pair: width_of(pair[0])):
            members = [number for number, column in enumerate(self.columns) if column.group == group]
            widest = max(members, key=lambda number: self.columns[number].natural - self.columns[number].width)
            table = table._widened(widest, width_of(group) - room, width)
        return table

    def _widened(self, number: int, wanted: int, width: int) -> Table:
        """Widen one column by ``wanted``, or by the room that is left."""
        spare = width - _total([column.width for column in self.columns])
        column = self.columns[number]
        wider = replace(column, width=column.width + max(0, min(wanted, spare)))
        return Table((*self.columns[:number], wider, *self.columns[number + 1 :]))


def width_of(text: str) -> int:
    """How many terminal columns a text takes."""
    return sum(_columns_of(letter) for letter in text)


def cut(text: str, width: int, mark: str) -> str:
    """The text cut to a width, with a mark where something is missing."""
    if width_of(text) <= width:
        return text
    mark = mark[: max(0, width)]
    kept, taken = "", width_of(mark)
    for letter in text:
        taken += _columns_of(letter)
        if taken > width:
            break
        kept += letter
    return kept + mark


def _columns_of(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + 3 * len(widths) + 1
