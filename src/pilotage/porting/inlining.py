"""Inlines functions that prepare a batch and call the model, so that both parts can be converted separately."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.code.flow import assigned, path_of, reads
from pilotage.porting.analysis.code.scopes import Function, Scope
from pilotage.porting.analysis.step import TrainingStep
from pilotage.porting.analysis.steps import find_steps
from pilotage.porting.project import Project
from pilotage.porting.sources.layout import indentation, indented, lines_of
from pilotage.porting.sources.source import Source

__all__ = ["with_inlined_steps"]

_TO_TENSORS = {"torch.tensor", "torch.from_numpy", "torch.as_tensor", "torch.FloatTensor", "torch.LongTensor"}
_MOST = 4
"""How deep such functions may be nested."""


def with_inlined_steps(sources: list[Source]) -> list[Source]:
    """The scripts with such functions inlined; a script without one is returned as the same object."""
    for _ in range(_MOST):
        project = Project(sources)
        changed = {
            source: text for step in find_steps(project)[0] for source, text in [_inlined(project, step)] if text
        }
        if not changed:
            break
        sources = [changed.get(source, source) for source in sources]
    return sources


def _inlined(project: Project, step: TrainingStep) -> tuple[Source, Source | None]:
    """The script of a step whose first call is inlined; None if that is not needed."""
    statement = step.region[0] if step.region else None
    if (
        not isinstance(statement, ast.Assign)
        or not isinstance(statement.value, ast.Call)
        or len(statement.targets) != 1
    ):
        return step.source, None
    known = project.callee(step.source, statement.value)
    if known is None or known[0] is not step.source or not _prepares(project, *known, depth=0):
        return step.source, None
    text = _written_out(step, statement, known[1])
    if text is None:
        return step.source, None
    start, end = lines_of(step.source, statement)
    source = step.source
    return source, source.replaced(start, end, text)


def _prepares(project: Project, source: Source, function: Scope, *, depth: int) -> bool:
    """Whether a function makes tensors from other values, which a program cannot do."""
    for node in ast.walk(function.node) if function.is_function else ():
        if project.names[source].calls(node) in _TO_TENSORS:
            return True
        known = project.callee(source, node) if isinstance(node, ast.Call) and depth < _MOST else None
        if known is not None and known[1] is not function and _prepares(project, *known, depth=depth + 1):
            return True
    return False


def _written_out(step: TrainingStep, statement: ast.Assign, function: Scope) -> str | None:
    """The body of a function in place of its call; None if that would change what the script does."""
    node, call = function.node, statement.value
    assert isinstance(node, Function)
    assert isinstance(call, ast.Call)
    *body, last = node.body
    if isinstance(body[0] if body else last, ast.Expr) and ast.get_docstring(node) is not None:
        body = body[1:]
    is_plain = isinstance(last, ast.Return) and last.value is not None and not _has_other_ends(body)
    names = [each.arg for each in node.args.args if each.arg != "self"]
    given = {
        **dict(zip(names, call.args, strict=False)),
        **{each.arg: each.value for each in call.keywords if each.arg},
    }
    if not is_plain or len(given) != len(names) or node.args.vararg or node.args.kwonlyargs or node.args.kwarg:
        return None
    if _clashes(step, statement, body, set(names)):
        return None
    source = step.source
    lines = [f"{name} = {source.segment(value)}\n" for name, value in given.items() if path_of(value) != name]
    for each in body:
        start, end = lines_of(source, each, with_comments=True)
        lines.append(indented(source.text[start:end], "", from_=indentation(source, each)))
    assert isinstance(last, ast.Return)
    assert last.value is not None
    lines += _results(source, statement.targets[0], last.value)
    return indented("".join(lines), indentation(source, statement))


def _has_other_ends(body: list[ast.stmt]) -> bool:
    ends = (ast.Return, ast.Yield, ast.YieldFrom, ast.FunctionDef, ast.Global, ast.Nonlocal)
    return any(isinstance(each, ends) for node in body for each in ast.walk(node))


def _clashes(step: TrainingStep, statement: ast.Assign, body: list[ast.stmt], parameters: set[str]) -> bool:
    """Whether a variable of the function would hide one that the step uses afterwards."""
    inner = {path for each in body for path in assigned(each)} | parameters
    results = assigned(statement)
    index = next((i for i, each in enumerate(step.block) if each is statement), None)
    if index is None:
        return True
    return bool((inner - results) & reads(step.block[index + 1 :]))


def _results(source: Source, target: ast.expr, value: ast.expr) -> list[str]:
    """Assignments of the values that the function returns."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = list(zip(target.elts, value.elts, strict=True))
        names = {path_of(left) for left, _ in pairs}
        if not any(reads(right) & names - {path_of(left)} for left, right in pairs):
            return [
                f"{source.segment(left)} = {source.segment(right)}\n"
                for left, right in pairs
                if path_of(left) is None or path_of(left) != path_of(right)
            ]
    return [f"{source.segment(target)} = {source.segment(value)}\n"]
