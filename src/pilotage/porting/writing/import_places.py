"""Where imports are added."""

from __future__ import annotations

import ast

from pilotage.porting.sources.layout import lines_of
from pilotage.porting.sources.source import Source

__all__ = ["import_place"]


def import_place(source: Source) -> tuple[int, str, str]:
    """After the imports at the top; the statement after them shows where they end."""
    last: ast.stmt | None = None
    for statement in source.tree.body:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if isinstance(statement, ast.Import | ast.ImportFrom):
            last = statement
        elif last is not None and not is_text:
            break
    if last is None:
        first = source.tree.body[0] if source.tree.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            return lines_of(source, first)[1], "\n", ""
        return 0, "", "\n"
    return lines_of(source, last)[1], "", ""
