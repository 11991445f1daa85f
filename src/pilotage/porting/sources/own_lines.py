"""Statements that share a line get lines of their own before a port edits them: ``zero_grad(); loss.backward()``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from pilotage.porting.sources.edits import Edit
from pilotage.porting.sources.layout import indentation, unit_of_indentation
from pilotage.porting.sources.source import Source

__all__ = ["with_own_lines"]

_Run = list[ast.stmt]


def with_own_lines(source: Source, edits: Iterable[Edit]) -> Source:
    """The script with every edited statement on a separate line; the same object if all of them are already."""
    touched = [(each.start, each.end) for each in edits if not _is_beside(each)]
    runs = [run for run in _shared(source) if _is_touched(source, run, touched)] if touched else []
    # From the last to the first, so that the places of the others stay right.
    for start, end, text in sorted((_divided(source, run) for run in runs), reverse=True):
        source = source.replaced(start, end, text)
    return source


def _is_beside(edit: Edit) -> bool:
    """Whether an edit only adds code beside blocks that are written in a line: another branch, or a definition."""
    return edit.start == edit.end and edit.text.lstrip().startswith(("elif ", "class ", "def "))


def _shared(source: Source) -> Iterator[_Run]:
    """Statements of one block that share a line with each other, or with the colon of their block."""
    for node in source.nodes:
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield from (run for run in _runs(block) if len(run) > 1 or _is_crowded(source, run[0]))


def _runs(block: list[ast.stmt]) -> Iterator[_Run]:
    run: _Run = []
    for statement in block:
        if run and statement.lineno != run[-1].end_lineno:
            yield run
            run = []
        run.append(statement)
    yield run


def _is_crowded(source: Source, statement: ast.stmt) -> bool:
    """Whether a statement is on the line of its block's colon, or before a semicolon."""
    return _is_behind_colon(source, statement) or _end(source, statement) > source.span(statement)[1]


def _end(source: Source, statement: ast.stmt) -> int:
    """Where a statement ends, with a semicolon that nothing follows."""
    end = source.span(statement)[1]
    semicolon = re.match(
        r"[ \t]*;[ \t]*(?=$|#|\r|\n)", source.text[end : source.line_start((statement.end_lineno or 0) + 1)]
    )
    return end if semicolon is None else end + semicolon.end()


def _is_behind_colon(source: Source, statement: ast.stmt) -> bool:
    start = source.span(statement)[0]
    return bool(source.text[source.line_start(statement.lineno) : start].strip()) and source.text[start] != "@"


def _is_touched(source: Source, run: _Run, touched: list[tuple[int, int]]) -> bool:
    start, end = source.line_start(run[0].lineno), source.line_start((run[-1].end_lineno or 0) + 1)
    return any(first < end and last > start if first < last else start < first <= end for first, last in touched)


def _divided(source: Source, run: _Run) -> tuple[int, int, str]:
    """The text of a run, with one statement in each line."""
    start, end = source.span(run[0])[0], _end(source, run[-1])
    indent = _indentation(source, run[0])
    texts = [source.segment(each) for each in run]
    head = source.text[source.line_start(run[0].lineno) : start]
    if head.strip():
        start -= len(head) - len(head.rstrip())
        texts = ["", *texts]
    return start, end, f"{source.newline}{indent}".join(texts)


def _indentation(source: Source, statement: ast.stmt) -> str:
    """How a statement is indented in a line of its own."""
    if not _is_behind_colon(source, statement):
        return indentation(source, statement)
    parent = source.parents[statement]
    line = source.line(getattr(parent, "lineno", 1))
    outer = line[: len(line) - len(line.lstrip(" \t\f"))].rpartition("\f")[2]
    return outer + unit_of_indentation(source)
