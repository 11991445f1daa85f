"""Edits that remove statements: whole lines, or parts of lines that statements share."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pilotage.porting.sources.edits import Edit
from pilotage.porting.sources.layout import lines_of
from pilotage.porting.sources.source import Source

__all__ = ["Removal", "removal_edits"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Removal:
    """The reason to remove a statement."""

    rule: str
    with_comments: bool


def removal_edits(source: Source, removed: Mapping[ast.stmt, Removal]) -> list[Edit]:
    """The edits that remove statements, and blank lines that would be left at the beginning of a block."""
    edits = list(_edits(source, removed))
    ends = {each.start: each for each in edits if not each.text}
    for edit in [each for each in edits if not each.text]:
        begins_run = edit.start not in {each.end for each in ends.values()}
        if begins_run and _is_blank_or_opens(source, edit.start):
            last = edit
            while last.end in ends and ends[last.end].end > last.end:
                last = ends[last.end]
            stop = last.end
            while source.text[stop : stop + 1] == "\n":
                stop += 1
            if stop > last.end and _depth(source, stop) >= _depth(source, edit.start):
                edits.append(Edit(start=last.end, end=stop, text="", rule=last.rule))
    return edits


def _depth(source: Source, offset: int) -> int:
    """The indentation of the line that begins at an offset."""
    line = source.text[offset : offset + 200].partition("\n")[0]
    return len(line) - len(line.lstrip())


def _is_blank_or_opens(source: Source, offset: int) -> bool:
    """Whether the line before is blank or opens a block."""
    line = source.text[:offset].rsplit("\n", 2)[-2:-1]
    return bool(line) and (not line[0].strip() or line[0].rstrip().endswith(":"))


def _edits(source: Source, removed: Mapping[ast.stmt, Removal]) -> Iterator[Edit]:
    for statement, removal in removed.items():
        run = _on_same_line(source, statement)
        if len(run) == 1:
            yield from _alone(source, statement, removal)
        elif all(each in removed for each in run):
            start = source.line_start(statement.lineno)
            head = source.text[start : source.span(run[0])[0]]
            end = source.span(run[-1])[1]
            if head.strip():
                yield Edit(start=source.span(run[0])[0], end=end, text="pass", rule=removal.rule)
            else:
                yield Edit(start=start, end=source.line_start(_last_line(run[-1]) + 1), text="", rule=removal.rule)
        else:
            yield _part(source, statement, run, removed, removal.rule)


def _alone(source: Source, statement: ast.stmt, removal: Removal) -> Iterator[Edit]:
    start, end = source.span(statement)
    head = source.text[source.line_start(statement.lineno) : start]
    if head.strip() and not head.lstrip().startswith("@"):
        # The only statement behind a colon.
        yield Edit(start=start, end=end, text="pass", rule=removal.rule)
        return
    start, end = lines_of(source, statement, with_comments=removal.with_comments)
    yield Edit(start=start, end=end, text="", rule=removal.rule)


def _part(
    source: Source,
    statement: ast.stmt,
    run: list[ast.stmt],
    removed: Mapping[ast.stmt, Removal],
    rule: str,
) -> Edit:
    index = next(i for i, each in enumerate(run) if each is statement)
    if any(each not in removed for each in run[index + 1 :]):
        return Edit(start=source.span(statement)[0], end=source.span(run[index + 1])[0], text="", rule=rule)
    kept = [each for each in run[:index] if each not in removed]
    return Edit(start=source.span(kept[-1])[1], end=source.span(statement)[1], text="", rule=rule)


def _on_same_line(source: Source, statement: ast.stmt) -> list[ast.stmt]:
    """The statements of a block that share a line with one of them."""
    return [
        each
        for each in source.block(statement)
        if each.lineno == statement.lineno or (each is not statement and _last_line(each) == statement.lineno)
    ] or [statement]


def _last_line(statement: ast.stmt) -> int:
    assert statement.end_lineno is not None
    return statement.end_lineno
