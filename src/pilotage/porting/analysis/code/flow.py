"""Which variables a piece of code reads and writes; ``self.x`` counts as a variable."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

__all__ = ["Use", "assigned", "is_super", "path_of", "reads", "root_of", "uses", "writes"]

Use = tuple[str, ast.expr, bool]
"""A variable, the node, and whether it is written."""


def path_of(node: ast.AST) -> str | None:
    """The variable that an expression names: ``model`` or ``self.model``; None for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return f"self.{node.attr}"
    return None


def root_of(node: ast.AST) -> str | None:
    """The variable at the beginning of a chain of attributes, subscripts and calls."""
    while path_of(node) is None:
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return None
    return path_of(node)


def is_super(node: ast.AST) -> bool:
    """Whether an expression is ``super()``, with or without arguments."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def uses(node: ast.AST) -> Iterator[Use]:
    """Every use of a variable, in the order of the tree, without the variables of comprehensions and lambdas."""
    yield from _uses(node, frozenset())


def reads(nodes: ast.AST | Iterable[ast.AST]) -> set[str]:
    """The variables that are read."""
    each = [nodes] if isinstance(nodes, ast.AST) else nodes
    return {path for node in each for path, _, is_written in uses(node) if not is_written}


def writes(node: ast.AST) -> set[str]:
    """The variables that are written, including by a subscript, an attribute or an augmented assignment."""
    found = assigned(node)
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute | ast.Subscript) and isinstance(each.ctx, ast.Store | ast.Del):
            root = root_of(each)
            if root is not None:
                found.add(root)
    return found


def assigned(node: ast.AST) -> set[str]:
    """The variables that a piece of code assigns."""
    return {path for path, _, is_written in uses(node) if is_written}


def _uses(node: ast.AST, hidden: frozenset[str]) -> Iterator[Use]:
    path = path_of(node)
    if path is not None:
        assert isinstance(node, ast.Name | ast.Attribute)
        if path not in hidden:
            yield path, node, not isinstance(node.ctx, ast.Load)
        return
    if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        inner = {each.id for part in node.generators for each in ast.walk(part.target) if isinstance(each, ast.Name)}
        hidden |= inner
    elif isinstance(node, ast.Lambda):
        hidden |= {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for child in ast.iter_child_nodes(node):
        yield from _uses(child, hidden)
