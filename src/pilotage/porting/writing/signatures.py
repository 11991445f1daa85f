"""Adds a parameter to a function, or an argument to a call."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.code.scopes import Function
from pilotage.porting.sources.source import Source

__all__ = ["argument_place", "keyword_span", "parameter_place"]


def parameter_place(source: Source, function: Function, name: str) -> tuple[int, str]:
    """Where a keyword-only parameter is inserted, and the text."""
    given = function.args
    nodes: list[ast.AST] = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    nodes += [each for each in (*given.defaults, *given.kw_defaults) if each is not None]
    if given.vararg is not None:
        nodes.append(given.vararg)
    star = "" if given.vararg is not None or given.kwonlyargs else "*, "
    if given.kwarg is not None:
        stars = source.text.rindex("**", 0, source.span(given.kwarg)[0])
        return stars, f"{star}{name}, "
    if not nodes:
        start = source.offset(function.lineno, function.col_offset)
        return source.text.index("(", source.text.index(function.name, start)) + 1, f"{star}{name}"
    end = max(source.span(each)[1] for each in nodes)
    return _after_brackets(source.text, end), f", {star}{name}"


def argument_place(source: Source, call: ast.Call, text: str) -> tuple[int, str]:
    """Where a keyword argument is inserted, and the text."""
    nodes: list[ast.AST] = [*call.args, *call.keywords]
    close = source.span(call)[1] - 1
    if not nodes:
        return close, text
    end = max(source.span(each)[1] for each in nodes)
    tail = source.text[end:close]
    if "#" not in tail and ")" in tail:
        end += tail.rindex(")") + 1
    lines = sorted({getattr(each.value if isinstance(each, ast.keyword) else each, "lineno", 0) for each in nodes})
    if len(lines) == len(nodes) > 1 and lines[0] > call.lineno:
        # One argument on each line: the new one gets a line too, before the last if that has a comment.
        line = source.line(lines[-1])
        indent = line[: len(line) - len(line.lstrip())]
        if "#" in tail and call.keywords and call.keywords[-1].arg is not None:
            return source.span(call.keywords[-1])[0], f"{text},\n{indent}"
        return end, f",\n{indent}{text}"
    return end, f", {text}"


def _after_brackets(text: str, end: int) -> int:
    """After brackets around a default, which are not part of its node."""
    depth = 0
    position = end
    while position < len(text) and text[position] in " \t)":
        if text[position] == ")":
            depth += 1
        position += 1
    # The last bracket closes the signature.
    return end if depth < 2 else end + text[end:position].rindex(")")


def keyword_span(source: Source, call: ast.Call, keyword: ast.keyword) -> tuple[int, int]:
    """The text of a keyword argument with the comma before it, or after it if it is the first."""
    start, end = source.span(keyword)
    before = [source.span(each)[1] for each in (*call.args, *call.keywords) if source.span(each)[1] <= start]
    if before:
        return max(before), end
    after = [source.span(each)[0] for each in call.keywords if source.span(each)[0] >= end]
    return start, min(after) if after else end
