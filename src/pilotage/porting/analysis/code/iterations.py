"""Loops and comprehensions around a node."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pilotage.porting.sources.source import Source

__all__ = ["iterated", "iterations_around", "within"]

_AROUND = {"enumerate", "tqdm", "iter", "islice", "track", "list"}
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


def within(source: Source, node: ast.AST, end: ast.AST) -> list[ast.AST]:
    """The ancestors of a node, up to and excluding an outer one."""
    found = []
    for each in source.ancestors(node):
        if each is end:
            break
        found.append(each)
    return found


def iterations_around(source: Source, node: ast.AST, end: ast.AST) -> Iterator[tuple[ast.AST, ast.expr | None]]:
    """The loops and comprehensions around a node, the innermost first, each with its iterable."""
    inner = node
    for each in within(source, node, end):
        if isinstance(each, ast.For) and inner is not each.iter:
            yield each, iterated(each.iter)
        elif isinstance(each, ast.While):
            yield each, None
        elif isinstance(each, _COMPREHENSIONS):
            for generator in reversed(each.generators):
                yield each, iterated(generator.iter)
        inner = each


def iterated(node: ast.expr) -> ast.expr:
    """The iterable of a loop, without enumerate and progress bars."""
    while isinstance(node, ast.Call) and node.args:
        last = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if last not in _AROUND:
            break
        node = node.args[0]
    return node
