"""Finds the loops that evaluate a model on batches of a loader."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from pilotage.porting.analysis.code.flow import path_of
from pilotage.porting.analysis.code.iterations import iterations_around, within
from pilotage.porting.analysis.code.origins import origins
from pilotage.porting.analysis.code.scopes import Function, Scope
from pilotage.porting.analysis.kinds import Kind, is_module_class, kind_of
from pilotage.porting.analysis.step import TrainingStep
from pilotage.porting.analysis.trained import Trained
from pilotage.porting.project import Project
from pilotage.porting.sources.source import Source

__all__ = ["Evaluation", "find_evaluations"]

_WITHOUT_GRADIENTS = {"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.set_grad_enabled"}
_MADE_BY_A_PORT = ("inference_model", "training_model")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Evaluation:
    """Calls of one model in one loop without gradients, or in a function that such a loop calls."""

    source: Source
    scope: Scope
    loop: ast.AST | None
    """The loop or comprehension around the calls."""

    anchor: ast.stmt
    """The first statement that uses the wrapped model."""

    model: str
    calls: tuple[ast.Call, ...]
    modes: tuple[ast.Call, ...]
    """The calls of ``model.eval()`` in the same scope."""

    loader: ast.expr | None


def find_evaluations(project: Project, steps: Iterable[TrainingStep]) -> list[Evaluation]:
    """Every evaluation of a model that is trained here, or put in evaluation mode."""
    makers: set[ast.AST] = set()
    regions: set[ast.AST] = set()
    for step in steps:
        makers |= Trained(project, step.source, step.optimizer).makers
        regions |= {each for node in (*step.region, step.loss) for each in ast.walk(node)}
    found: list[Evaluation] = []
    for source in project.sources:
        for scope in project.scopes[source]:
            if not scope.is_class and not _is_module_method(project, scope):
                found += _in_scope(project, scope, makers, regions)
    return found


def _is_module_method(project: Project, scope: Scope) -> bool:
    owner = scope.method_of
    return (
        owner is not None
        and isinstance(owner.node, ast.ClassDef)
        and is_module_class(project, scope.source, owner.node)
    )


def _in_scope(project: Project, scope: Scope, makers: set[ast.AST], regions: set[ast.AST]) -> list[Evaluation]:
    source = scope.source
    modes: dict[str, list[ast.Call]] = {}
    calls: dict[tuple[str, ast.AST | None], list[ast.Call]] = {}
    for node in ast.walk(scope.node):
        if not isinstance(node, ast.Call) or project.scope_of(source, node) is not scope:
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr == "eval" and not node.args:
            path = path_of(node.func.value)
            if path is not None:
                modes.setdefault(path, []).append(node)
        path = path_of(node.func)
        if path is None or node in regions or _is_ported(source.statement(node)):
            continue
        loop, loader = _iteration(source, node, scope)
        is_of_batches = _is_batch_loop(project, source, loop, loader) or (
            loop is None and _is_called_for_batches(project, scope)
        )
        if is_of_batches and (_is_without_gradients(project, source, scope, node) or path in modes):
            calls.setdefault((path, loop), []).append(node)
    found = []
    for (path, loop), nodes in calls.items():
        owner = scope.resolve(path)
        if owner is None or any(
            isinstance(each, Function | ast.ClassDef | ast.alias) for each in owner.bindings.get(path, ())
        ):
            continue
        made = {each.node for each in origins(project, source, nodes[0].func)}
        if path in modes or made & makers:
            found.append(
                Evaluation(
                    source=source,
                    scope=scope,
                    loop=loop,
                    anchor=_first(source, [*modes.get(path, ()), loop if loop is not None else nodes[0]]),
                    model=path,
                    calls=tuple(nodes),
                    modes=tuple(modes.get(path, ())),
                    loader=_iteration(source, nodes[0], scope)[1]
                    if loop is not None
                    else _callers_loader(project, scope),
                )
            )
    return found


def _first(source: Source, nodes: list[ast.AST]) -> ast.stmt:
    return source.statement(min(nodes, key=source.place))


def _iteration(source: Source, node: ast.AST, scope: Scope) -> tuple[ast.AST | None, ast.expr | None]:
    return next(iterations_around(source, node, scope.node), (None, None))


def _is_batch_loop(project: Project, source: Source, loop: ast.AST | None, loader: ast.expr | None) -> bool:
    if loop is None or loader is None:
        return False
    if any(isinstance(each, ast.Call) and _trains(each) for each in ast.walk(loop)):
        return False
    return kind_of(project, source, loader) is Kind.LOADER or _is_subscript_of_loaders(loader)


def _trains(call: ast.Call) -> bool:
    """Whether a call is a backward pass, or calls a wrapped model that an earlier port has made."""
    return getattr(call.func, "attr", "") == "backward" or (path_of(call.func) or "").endswith("training_model")


def _is_ported(statement: ast.stmt) -> bool:
    """Whether an earlier port has converted a statement."""
    if isinstance(statement, ast.For | ast.With | ast.If | ast.While):
        return False
    return any((path_of(each) or "").endswith(_MADE_BY_A_PORT) for each in ast.walk(statement))


def _callers_loader(project: Project, scope: Scope) -> ast.expr | None:
    """The loader of the loop that calls a method, if the method sees it as an attribute too."""
    assert isinstance(scope.node, Function)
    found = {
        path: loader
        for call in project.callers(scope.node)
        for loader in [_iteration(call.source, call.call, call.scope)[1]]
        if loader is not None and (path := path_of(loader)) is not None and call.scope.method_of is scope.method_of
    }
    is_attribute = len(found) == 1 and next(iter(found)).startswith("self.")
    return next(iter(found.values())) if is_attribute else None


def _is_subscript_of_loaders(node: ast.expr) -> bool:
    return isinstance(node, ast.Subscript) and "loader" in ast.unparse(node.value).lower()


def _is_called_for_batches(project: Project, scope: Scope) -> bool:
    """Whether a function is called in loops over batches only, and not for training."""
    if not isinstance(scope.node, Function):
        return False
    callers = project.callers(scope.node)
    for call in callers:
        if not _is_batch_loop(project, call.source, *_iteration(call.source, call.call, call.scope)):
            return False
    return bool(callers)


def _is_without_gradients(project: Project, source: Source, scope: Scope, node: ast.AST) -> bool:
    names = project.names[source]
    for each in within(source, node, scope.node):
        if isinstance(each, ast.With):
            for item in each.items:
                if names.calls(item.context_expr) in _WITHOUT_GRADIENTS:
                    return True
    if isinstance(scope.node, Function):
        for decorator in scope.node.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if names.dotted(called) in _WITHOUT_GRADIENTS:
                return True
        return any(
            _is_without_gradients(project, call.source, call.scope, call.call)
            for call in project.callers(scope.node)
            if call.scope is not scope
        )
    return False
