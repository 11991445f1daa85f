"""Draw tables as lines of styled text, as gc-monitor does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from pilotage.cli.monitor.table import Cell, Table, cut, width_of

__all__ = ["ASCII", "BOXES", "Drawing", "Line", "draw", "draw_box"]

Line = list[Cell]
"""Pieces of text, from left to right."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """The characters to draw rules with."""

    across: str
    down: str
    corners: str
    """Junctions of a rule with lines below, on both sides and above it: each left, inner and right."""

    missing: str
    """Marks text that was cut."""


ASCII = Drawing(across="-", down="|", corners="+" * 9, missing="...")
BOXES = Drawing(across="─", down="│", corners="┌┬┐├┼┤└┴┘", missing="…")


def draw(table: Table, drawing: Drawing) -> list[Line]:
    """Draw a fitted table: groups, titles, rows."""
    columns = [column.width for column in table.columns]
    group_widths = [width for _, width in table.groups]
    groups = [Cell(group if width > len(drawing.missing) else "", "title") for group, width in table.groups]
    titles = [Cell(column.title, "title") for column in table.columns]
    alignments = [column.align for column in table.columns]
    return [
        _rule(drawing, below=group_widths),
        _row(groups, group_widths, ["^"] * len(groups), drawing),
        _rule(drawing, above=group_widths, below=columns),
        _row(titles, columns, ["^"] * len(columns), drawing),
        _rule(drawing, above=columns, below=columns),
        *(_row(row, columns, alignments, drawing) for row in table.rows),
        _rule(drawing, above=columns),
    ]


def draw_box(text: str, width: int, drawing: Drawing) -> list[Line]:
    """Draw a text in a frame."""
    room = max(1, min(width_of(text), width - 4))
    row = _row([Cell(text, "title")], [room], ["^"], drawing)
    return [_rule(drawing, below=[room]), row, _rule(drawing, above=[room])]


def _rule(drawing: Drawing, *, above: Sequence[int] = (), below: Sequence[int] = ()) -> Line:
    """A rule between two rows of cells with these widths, or above or below one."""
    upwards, downwards = _ends(above), _ends(below)
    last = max(*upwards, *downwards)
    marks = [drawing.across] * (last + 1)
    for place in (*upwards, *downwards):
        direction = 0 if place not in upwards else 1 if place in downwards else 2
        end = 0 if place == 0 else 2 if place == last else 1
        marks[place] = drawing.corners[3 * direction + end]
    return [Cell("".join(marks), "rule")]


def _ends(widths: Sequence[int]) -> list[int]:
    """The columns of the lines between cells of these widths."""
    return list(accumulate((width + 3 for width in widths), initial=0)) if widths else []


def _row(cells: Sequence[Cell], widths: Sequence[int], alignments: Sequence[str], drawing: Drawing) -> Line:
    line = [Cell(drawing.down, "rule")]
    for cell, width, align in zip(cells, widths, alignments, strict=True):
        text = cut(cell.text, width, drawing.missing)
        spare = width - width_of(text)
        left = {"<": 0, "^": spare // 2, ">": spare}[align]
        line += [Cell(f" {' ' * left}{text}{' ' * (spare - left)} ", cell.style), Cell(drawing.down, "rule")]
    return line
