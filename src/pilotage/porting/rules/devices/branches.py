"""Removes branches that only run with CUDA."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.training_calls import walk_statements
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.plain_example import PLAIN_LOOP
from pilotage.porting.sources.layout import indentation, lines_of
from pilotage.porting.sources.source import Source
from pilotage.porting.writing.dialect import PROGRAMS

__all__ = ["RULE", "branches_that_go", "is_never_true"]

NAME = "cuda-branches"
_ABSENT = ("torch.cuda.is_available", "torch.backends.mps.is_available", "torch.accelerator.is_available")
_COMPLAINTS = ("print", "exit", "quit", "sys.exit", "warnings.warn", "logging", "logger")


def apply(porting: Porting) -> None:
    """Remove the branches."""
    if not porting.has_work:
        return
    for source in porting.project.sources:
        for node in source.nodes:
            if isinstance(node, ast.If):
                _condition(porting, source, node)
            elif isinstance(node, ast.Assert) and _asks(porting, source, node.test):
                porting.remove(source, node, NAME)
            elif _only_acts_with_cuda(porting, source, node):
                assert isinstance(node, ast.stmt)
                porting.remove(source, node, NAME)


def _only_acts_with_cuda(porting: Porting, source: Source, node: ast.AST) -> bool:
    """Whether a statement is like ``torch.cuda.synchronize() if torch.cuda.is_available() else None``."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.IfExp):
        return False
    return is_never_true(porting, source, node.value.test) and isinstance(node.value.orelse, ast.Constant)


def is_never_true(porting: Porting, source: Source, test: ast.expr) -> bool:
    """Whether a test checks for CUDA, possibly together with settings."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        others = [each for each in test.values if not _asks(porting, source, each)]
        return len(others) < len(test.values) and all(_is_setting(each) for each in others)
    return _asks(porting, source, test)


def branches_that_go(porting: Porting, source: Source) -> set[ast.AST]:
    """The nodes of code that only runs with CUDA."""
    key = f"{NAME} {source.name}"
    if key not in porting.known:
        found = [node for node in source.nodes if isinstance(node, ast.If) and _is_dead(porting, source, node)]
        porting.known[key] = {each for node in found for statement in node.body for each in ast.walk(statement)}
    known: set[ast.AST] = porting.known[key]
    return known


def _asks(porting: Porting, source: Source, test: ast.expr) -> bool:
    return isinstance(test, ast.Call) and porting.project.names[source].calls(test) in _ABSENT


def _is_setting(node: ast.expr) -> bool:
    """Whether an expression is a setting, or its opposite: leaving it out changes nothing else."""
    while isinstance(node, ast.UnaryOp | ast.Attribute):
        node = node.operand if isinstance(node, ast.UnaryOp) else node.value
    return isinstance(node, ast.Name | ast.Constant)


def _condition(porting: Porting, source: Source, node: ast.If) -> None:
    if _is_dead(porting, source, node):
        _take_out(porting, source, node)
        return
    is_denied = isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)
    is_alone = not node.orelse and not _is_elif(source, node)
    if is_denied and is_alone and isinstance(node.test, ast.UnaryOp) and _asks(porting, source, node.test.operand):
        _remove_complaints(porting, source, node)


def _is_dead(porting: Porting, source: Source, node: ast.If) -> bool:
    """Whether a branch never runs; one that trains is kept, whatever it asks for."""
    if not is_never_true(porting, source, node.test):
        return False
    return not (_trains(porting, source, node.body) or _has_strings_over_lines(node) or _shares_a_line(source, node))


def _trains(porting: Porting, source: Source, block: list[ast.stmt]) -> bool:
    """Whether statements make a training step, or call a function that does or that makes the wrapped model."""
    scopes = {each.step.scope.node for each in porting.plan.steps} | {
        each.scope.node for each in porting.plan.training.sites
    }
    anchors = {each.step.anchor for each in porting.plan.steps}
    for statement in walk_statements(block):
        if statement in anchors:
            return True
        for call in ast.walk(statement):
            called = porting.project.callee(source, call) if isinstance(call, ast.Call) else None
            if called is not None and called[1].node in scopes:
                return True
    return False


def _has_strings_over_lines(node: ast.If) -> bool:
    strings = (each for each in ast.walk(node) if isinstance(each, ast.Constant | ast.JoinedStr))
    return any(each.end_lineno != each.lineno for each in strings)


def _shares_a_line(source: Source, node: ast.If) -> bool:
    """Whether the remaining statement is on the line of its condition, after the colon."""
    if not node.orelse or _is_chained(source, node):
        return False
    first = node.orelse[0]
    return bool(source.text[source.line_start(first.lineno) : source.span(first)[0]].strip())


def _is_elif(source: Source, node: ast.If) -> bool:
    return source.text.startswith("elif", source.span(node)[0])


def _is_chained(source: Source, node: ast.If) -> bool:
    return len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If) and _is_elif(source, node.orelse[0])


def _take_out(porting: Porting, source: Source, node: ast.If) -> None:
    start = source.span(node)[0]
    begin = source.line_start(node.lineno)
    if not node.orelse or set(node.orelse) <= porting.removed(source):
        if _is_elif(source, node):
            porting.edit(source, begin, lines_of(source, [*node.body, *node.orelse][-1])[1], "", NAME)
        else:
            porting.remove(source, node, NAME)
    elif _is_chained(source, node):
        following = source.span(node.orelse[0])[0]
        porting.edit(source, start, following + (0 if _is_elif(source, node) else len("el")), "", NAME)
    else:
        first = source.text.rindex("else", 0, source.span(node.orelse[0])[0])
        if _is_elif(source, node):
            porting.edit(source, start, first, "", NAME)
            return
        line = source.text.count("\n", 0, first) + 2
        porting.edit(source, begin, source.line_start(line), "", NAME)
        unit = indentation(source, node.orelse[0]).removeprefix(indentation(source, node))
        assert node.end_lineno is not None
        porting.unindent(source, line, node.end_lineno, unit, NAME)


def _remove_complaints(porting: Porting, source: Source, node: ast.If) -> None:
    if all(_complains(each) for each in node.body):
        porting.remove(source, node, NAME)


def _complains(statement: ast.stmt) -> bool:
    """Whether a statement only reports that CUDA is missing, or ends the script because of it."""
    if isinstance(statement, ast.Raise | ast.Return):
        return True
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and ast.unparse(statement.value.func).startswith(_COMPLAINTS)
    )


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="Branches that only run with CUDA are removed, and so are checks that end the script without it.",
    why="The wrapped model chooses its device, and the rest of the script runs on the host.",
    example=Example(
        before="""\
import sys
import torch
import torch.nn.functional as F
from torch import nn

if not torch.cuda.is_available():
    sys.exit("no GPU")
if torch.cuda.is_available():
    print(torch.cuda.get_device_name())
else:
    print("slow")
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
        + PLAIN_LOOP,
        after="""\
import sys
import torch
import torch.nn.functional as F
from torch import nn

print("slow")
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
        + PLAIN_LOOP,
    ),
    apply=apply,
)
