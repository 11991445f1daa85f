"""A table as lines of text with colours or without, in the manner of gc-monitor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pilotage.cli.monitor.table import Cell, Table, cut, width_of

__all__ = ["ASCII", "BOXES", "Drawing", "Line", "draw", "draw_box"]

Line = list[Cell]
"""Pieces of text one behind the other."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """What rules are drawn with."""

    across: str
    down: str
    corner: str
    missing: str
    """Stands for what has no room."""


ASCII = Drawing(across="-", down="|", corner="+", missing="...")
BOXES = Drawing(across="─", down="│", corner="┼", missing="…")


def draw(table: Table, drawing: Drawing) -> list[Line]:
    """Draw a fitted table: groups, titles, rows."""
    columns = [column.width for column in table.columns]
    group_widths = [width for _, width in table.groups]
    groups = [Cell(group if width > len(drawing.missing) else "", "title") for group, width in table.groups]
    above = _row(groups, group_widths, ["^"] * len(groups), drawing)
    titles = [Cell(column.title, "title") for column in table.columns]
    centred, aligned = ["^"] * len(columns), [column.align for column in table.columns]
    rule = _rule(columns, drawing)
    return [
        _rule(group_widths, drawing),
        above,
        rule,
        _row(titles, columns, centred, drawing),
        rule,
        *(_row(row, columns, aligned, drawing) for row in table.rows),
        rule,
    ]


def draw_box(text: str, width: int, drawing: Drawing) -> list[Line]:
    """Draw one text with a frame around it."""
    room = max(1, min(width_of(text), width - 4))
    rule = _rule([room], drawing)
    return [rule, _row([Cell(text, "title")], [room], ["^"], drawing), rule]


def _rule(widths: Iterable[int], drawing: Drawing) -> Line:
    parts = drawing.corner.join(drawing.across * (width + 2) for width in widths)
    return [Cell(f"{drawing.corner}{parts}{drawing.corner}", "rule")]


def _row(cells: Sequence[Cell], widths: Sequence[int], alignments: Sequence[str], drawing: Drawing) -> Line:
    line = [Cell(drawing.down, "rule")]
    for cell, width, align in zip(cells, widths, alignments, strict=True):
        text = cut(cell.text, width, drawing.missing)
        spare = width - width_of(text)
        left = {"<": 0, "^": spare // 2, ">": spare}[align]
        line += [Cell(f" {' ' * left}{text}{' ' * (spare - left)} ", cell.sort), Cell(drawing.down, "rule")]
    return line
