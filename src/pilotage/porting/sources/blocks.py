"""Blocks whose statements are all removed: a condition without branches is removed too, others get a ``pass``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pilotage.porting.sources.layout import indentation, lines_of
from pilotage.porting.sources.source import Source

if TYPE_CHECKING:
    from pilotage.porting.porting import Porting

__all__ = ["fill_empty_blocks"]

_RULE = "device-moves"
_QUESTIONS = ("is_", "has", "isinstance", "len", "get", "device_count")
"""Prefixes of functions that return an answer and have no effect."""


def fill_empty_blocks(porting: Porting, source: Source) -> None:
    """Make sure that no block is left without a statement."""
    _remove_empty_conditions(porting, source)
    removed = porting.removed(source)
    if not removed:
        return
    gone = [source.span(each) for each in removed]
    written = [
        edit.start
        for edit in porting.edits(source)
        if edit.text.strip() and not any(start < edit.start < end for start, end in gone)
    ]
    for node in source.nodes:
        if node in removed or isinstance(node, ast.Module):
            continue
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt) and set(block) <= removed:
                start, _ = lines_of(source, block[0], with_comments=True)
                end = lines_of(source, block[-1])[1]
                if not any(start <= each < end for each in written):
                    porting.edit(source, start, start, f"{indentation(source, block[0])}pass\n", _RULE)


def _does_something(test: ast.expr) -> bool:
    """Whether a test may have an effect: it binds a name, or calls anything but such a function of a module."""
    return any(
        isinstance(each, ast.NamedExpr | ast.Await | ast.Yield)
        or (isinstance(each, ast.Call) and not ast.unparse(each.func).rpartition(".")[2].startswith(_QUESTIONS))
        for each in ast.walk(test)
    )


def _remove_empty_conditions(porting: Porting, source: Source) -> None:
    is_changed = True
    while is_changed:
        is_changed = False
        removed = porting.removed(source)
        # A removed statement behind a colon is written as a pass, which goes with the condition.
        written = [edit.start for edit in porting.edits(source) if edit.text.strip() not in ("", "pass")]
        for node in source.nodes if removed else ():
            is_left = isinstance(node, ast.If) and node not in removed
            if is_left and isinstance(node, ast.If) and {*node.body, *node.orelse} <= removed:
                start, end = lines_of(source, node)
                tests = [source.span(each.test) for each in ast.walk(node) if isinstance(each, ast.If)]
                kept = [each for each in written if start <= each < end]
                kept = [each for each in kept if not any(first <= each < last for first, last in tests)]
                if not kept and not _does_something(node.test):
                    porting.remove(source, node, _RULE)
                    is_changed = True
