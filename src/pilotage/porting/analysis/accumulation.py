"""Gradient accumulation: ``if (i + 1) % n == 0: optimizer.step()``."""

from __future__ import annotations

import ast
from dataclasses import dataclass

__all__ = ["Accumulation", "accumulation_of", "division_by"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Accumulation:
    """How many backward passes make one update."""

    count: ast.expr
    """The expression for their number."""

    condition: ast.If
    has_tail: bool
    """Whether an incomplete group at the end of an epoch makes an update too."""

    starts_late: bool = False
    """Whether the first update comes after one pass (``i % n == 0``), so that the groups are shifted."""


def accumulation_of(condition: ast.If, loop: ast.For | ast.While | None) -> Accumulation | None:
    """The accumulation that a condition around an update expresses; None for other conditions."""
    tests = condition.test.values if isinstance(condition.test, ast.BoolOp) else [condition.test]
    is_any = isinstance(condition.test, ast.BoolOp) and isinstance(condition.test.op, ast.Or)
    if len(tests) > 1 and not is_any:
        return None
    for test in tests:
        found = _count_of(test)
        if found is not None:
            count, shift = found
            first = _first_index(loop, test)
            complete = (first is None) or shift + first == 1
            return Accumulation(count=count, condition=condition, has_tail=len(tests) > 1, starts_late=not complete)
    return None


def division_by(node: ast.expr, count: ast.expr) -> ast.expr | None:
    """The dividend of an expression that divides by the number of accumulated passes; None for other expressions."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and ast.dump(node.right) == ast.dump(count):
        return node.left
    return None


def _count_of(test: ast.expr) -> tuple[ast.expr, int] | None:
    """The number after ``%``, and what is added to the index so that the last pass of a group gives 0."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _modulo(test.operand)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return None
    found = _modulo(test.left)
    if found is None:
        return None
    other = test.comparators[0]
    if isinstance(other, ast.Constant) and other.value == 0:
        return found
    is_last = (
        isinstance(other, ast.BinOp)
        and isinstance(other.op, ast.Sub)
        and ast.dump(other.left) == ast.dump(found[0])
        and isinstance(other.right, ast.Constant)
        and other.right.value == 1
    )
    return (found[0], found[1] + 1) if is_last else None


def _modulo(node: ast.expr) -> tuple[ast.expr, int] | None:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mod):
        return None
    index = node.left
    if isinstance(index, ast.BinOp) and isinstance(index.op, ast.Add) and isinstance(index.right, ast.Constant):
        return node.right, int(index.right.value) if isinstance(index.right.value, int) else 0
    return node.right, 0


def _first_index(loop: ast.For | ast.While | None, test: ast.expr) -> int | None:
    """The first value of a loop index; None if the variable is not one."""
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Tuple):
        return None
    index = loop.target.elts[0]
    names = {each.id for each in ast.walk(test) if isinstance(each, ast.Name)}
    if not isinstance(index, ast.Name) or index.id not in names:
        return None
    call = next((each for each in ast.walk(loop.iter) if _is_enumerate(each)), None)
    if not isinstance(call, ast.Call):
        return 0
    start = next((each.value for each in call.keywords if each.arg == "start"), None)
    start = start if start is not None else (call.args[1] if len(call.args) > 1 else None)
    return start.value if isinstance(start, ast.Constant) and isinstance(start.value, int) else 0


def _is_enumerate(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "enumerate"
