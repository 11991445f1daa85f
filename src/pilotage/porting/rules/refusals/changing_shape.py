"""Results whose size depends on values."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pilotage.porting.analysis.code.flow import path_of
from pilotage.porting.analysis.code.scopes import Function
from pilotage.porting.analysis.kinds import is_module_class
from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.sources.source import Source
from pilotage.porting.writing.dialect import PROGRAMS

__all__ = ["RULE"]

NAME = "changing-shape"
_COMPARING = {
    "bool",
    "eq",
    "ne",
    "gt",
    "ge",
    "lt",
    "le",
    "isnan",
    "isfinite",
    "logical_not",
    "logical_and",
    "logical_or",
}
_SELECTING = {"masked_select", "nonzero", "unique", "argwhere"}


def apply(porting: Porting) -> None:
    """Refuse code of a step that picks elements by a mask."""
    seen: set[ast.AST] = set()
    for source, node in _code_of_steps(porting):
        if node not in seen:
            seen |= set(ast.walk(node))
            _look_into(porting, source, node)


def _code_of_steps(porting: Porting) -> Iterator[tuple[Source, ast.AST]]:
    """The code that becomes part of a program: the steps, the functions that they call, and forward methods."""
    project = porting.project
    waiting: list[tuple[Source, ast.AST]] = []
    for planned in porting.plan.steps:
        step = planned.step
        waiting += [(step.source, each) for each in (*step.region, step.loss)]
    for source in project.sources if porting.plan.steps else ():
        for node in source.nodes:
            if isinstance(node, ast.ClassDef) and is_module_class(project, source, node):
                waiting += [
                    (source, each) for each in node.body if isinstance(each, Function) and each.name == "forward"
                ]
    known: set[ast.AST] = set()
    while waiting:
        source, node = waiting.pop(0)
        if node in known:
            continue
        known.add(node)
        yield source, node
        for call in ast.walk(node):
            called = project.callee(source, call) if isinstance(call, ast.Call) else None
            if called is not None and called[1].is_function:
                waiting.append((called[0], called[1].node))


def _look_into(porting: Porting, source: Source, node: ast.AST) -> None:
    masks = {path_of(node): node for node in _assigned_masks(porting, source, node)}
    for each in ast.walk(node):
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Load):
            if _is_mask(each.slice) or (path_of(each.slice) in masks and path_of(each.slice) is not None):
                _refuse(porting, source, each)
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in _SELECTING:
            _refuse(porting, source, each)


def _refuse(porting: Porting, source: Source, node: ast.expr) -> None:
    porting.find(
        source,
        node,
        NAME,
        Severity.REFUSED,
        f"The size of {ast.unparse(node)!r} depends on the values of a tensor.",
        "Keep the full size: torch.where(mask, x, 0) blanks out the rest, and mask.sum() says how many elements count. "
        "A mask that never changes can become a tensor of indices, made once outside of the step.",
    )


def _assigned_masks(porting: Porting, source: Source, node: ast.AST) -> Iterator[ast.expr]:
    """The variables of this function that hold masks."""
    scope = node if isinstance(node, Function) else porting.project.scope_of(source, node).node
    for each in ast.walk(scope):
        if isinstance(each, ast.Assign) and len(each.targets) == 1 and _is_mask(each.value):
            yield each.targets[0]


def _is_mask(node: ast.expr) -> bool:
    """Whether the value of an expression is true or false for each element."""
    if isinstance(node, ast.Compare):
        return not any(isinstance(each, ast.Is | ast.IsNot | ast.In | ast.NotIn) for each in node.ops)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Invert)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.BitAnd | ast.BitOr) and (_is_mask(node.left) or _is_mask(node.right))
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _COMPARING


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="Results whose size depends on values are refused: elements picked by a mask, masked_select, nonzero, unique.",
    why="A program is made before there are values, and every tensor in it has one size.",
    example=Example(
        before=PLAIN_STEP
        + """\
for x, y in loader:
    optimizer.zero_grad()
    error = (model(x) - y) ** 2
    loss = error[y > 0].mean()
    loss.backward()
    optimizer.step()
""",
        finds="depends on the values of a tensor",
    ),
    apply=apply,
)
