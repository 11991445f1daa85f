"""Statements in their lines: indentation, removal with their comments, and moving text to another depth."""

from __future__ import annotations

import ast
import io
import re
import tokenize

from pilotage.porting.sources.source import Source, lines_in

__all__ = ["indentation", "indented", "lines_of", "unit_of_indentation"]


def indentation(source: Source, statement: ast.stmt) -> str:
    """The white space before a statement."""
    line = source.line(source.place(statement)[0])
    # A form feed resets the column.
    return line[: len(line) - len(line.lstrip(" \t\f"))].rpartition("\f")[2]


def unit_of_indentation(source: Source) -> str:
    """The indentation of one more level."""
    for node in source.nodes:
        body = getattr(node, "body", None)
        if isinstance(node, ast.stmt) and isinstance(body, list) and body and body[0].lineno > node.lineno:
            inner, outer = indentation(source, body[0]), indentation(source, node)
            if inner.startswith(outer) and len(inner) > len(outer):
                return inner[len(outer) :]
    return "    "


def lines_of(source: Source, statement: ast.stmt, *, with_comments: bool = False) -> tuple[int, int]:
    """Where the lines of a statement begin and end, with what follows it on its last line if that is a comment.

    With comments, the comment lines right above it belong to it, unless they are the first of their block or separated
    by a blank line. If other statements share a line with it, only the statement itself is meant.
    """
    start, end = source.span(statement)
    first, last = _line_of(statement), _end(statement)
    head = source.text[source.line_start(first) : start]
    tail = source.text[end : source.line_start(last + 1)]
    if head.strip() or (tail.strip() and not tail.lstrip().startswith("#")):
        return _shared_line(source, statement, start, end)
    if with_comments:
        while first > 1 and _is_comment(source, first - 1, head):
            first -= 1
    return source.line_start(first), source.line_start(last + 1)


def indented(text: str, by: str, *, from_: str = "") -> str:
    """Text with another indentation; lines inside of strings stay as they are."""
    inside = _lines_inside_strings(text)
    lines = lines_in(text)
    return "".join(
        line if number in inside or not line.strip() else by + line.removeprefix(from_)
        for number, line in enumerate(lines, 1)
    )


def _line_of(statement: ast.stmt) -> int:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and statement.decorator_list:
        return statement.decorator_list[0].lineno
    return statement.lineno


def _end(statement: ast.stmt) -> int:
    assert statement.end_lineno is not None
    return statement.end_lineno


def _is_comment(source: Source, line: int, head: str) -> bool:
    text = source.line(line)
    return text.startswith(head + "#") and not text.lstrip().startswith(("#!", "# %%", "# noqa", "# type:"))


def _shared_line(source: Source, statement: ast.stmt, start: int, end: int) -> tuple[int, int]:
    """A statement between semicolons, with one of them."""
    after = re.compile(r"[ \t]*;[ \t]*").match(source.text, end)
    if after is not None:
        return start, after.end()
    before = re.compile(r"[ \t]*;[ \t]*$").search(source.text, source.line_start(_line_of(statement)), start)
    return (before.start() if before is not None else start), end


def _lines_inside_strings(text: str) -> set[int]:
    """The lines of a text that begin inside of a string."""
    inside: set[int] = set()
    try:
        starts: list[int] = []
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            name = tokenize.tok_name[token.type]
            if name.endswith("STRING_START"):
                starts.append(token.start[0])
            elif name.endswith("STRING_END") and starts:
                inside |= set(range(starts.pop() + 1, token.end[0] + 1))
            elif token.type == tokenize.STRING:
                inside |= set(range(token.start[0] + 1, token.end[0] + 1))
    except (tokenize.TokenError, IndentationError):
        pass
    return inside
