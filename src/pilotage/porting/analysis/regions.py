"""The part of a training step that goes into forward: from the model's call to the loss."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.code.flow import assigned, path_of, reads, root_of, uses, writes
from pilotage.porting.analysis.code.scopes import Scope
from pilotage.porting.analysis.refusal import Refused
from pilotage.porting.analysis.trained import Trained
from pilotage.porting.analysis.training_calls import TrainingCall, is_training_only
from pilotage.porting.project import Project

__all__ = ["region_of"]

_TO_PYTHON = {"item", "tolist", "numpy"}


def region_of(
    project: Project, scope: Scope, block: list[ast.stmt], anchor: ast.stmt, call: TrainingCall, trained: Trained
) -> tuple[tuple[ast.stmt, ...], tuple[ast.stmt, ...], tuple[str, ...]]:
    """The statements that go into forward, those in between that stay behind, and the models among the variables."""
    assert call.subject is not None
    before = block[: next(i for i, each in enumerate(block) if each is anchor)]
    needed = _sliced(before, reads(call.subject))
    whole: list[ast.AST] = [*needed, call.subject]
    models = _models(scope, whole, trained)
    start = next((i for i, each in enumerate(needed) if _mentions(project, scope, each, models, trained)), None)
    if start is None and not _mentions(project, scope, call.subject, models, trained):
        rule = "loss-from-elsewhere" if models else "model-not-found"
        raise Refused(scope.source, call.call, rule, ast.unparse(call.subject))
    region = tuple(needed[start:]) if start is not None else ()
    first = before.index(region[0]) if region else len(before)
    later = tuple(
        each for each in before[first:] if each not in region and not is_training_only(project, scope.source, each)
    )
    _refuse_what_no_program_can_do(scope, region, call, later)
    return region, later, models


def _sliced(before: list[ast.stmt], needed: set[str]) -> list[ast.stmt]:
    """The statements that a set of variables depends on, in order."""
    found: list[ast.stmt] = []
    needed = set(needed)
    for statement in reversed(before):
        changed = writes(statement) | _mutated(statement)
        if changed & needed:
            found.append(statement)
            is_certain = isinstance(statement, ast.Assign | ast.AnnAssign)
            if is_certain:
                needed -= assigned(statement) - reads(statement)
            needed |= reads(statement)
    return list(reversed(found))


def _mutated(statement: ast.stmt) -> set[str]:
    """The variable whose method a statement calls for its effect, such as ``losses.append(loss)``."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        func = statement.value.func
        if isinstance(func, ast.Attribute) and (func.attr in ("append", "extend", "update") or func.attr.endswith("_")):
            root = root_of(func.value)
            return {root} if root is not None else set()
    return set()


def _models(scope: Scope, nodes: list[ast.AST], trained: Trained) -> tuple[str, ...]:
    """The variables of these statements that are trained."""
    found: dict[str, None] = {}
    for node in nodes:
        for path, each, is_written in uses(node):
            if not is_written and path not in found and scope.resolve(path) is not None:
                if _is_definition(scope, path):
                    continue
                if trained.is_one(scope.source, each):
                    found[path] = None
    return tuple(found)


def _is_definition(scope: Scope, path: str) -> bool:
    owner = scope.resolve(path)
    return owner is not None and any(
        isinstance(each, ast.FunctionDef | ast.ClassDef | ast.alias) for each in owner.bindings.get(path, ())
    )


def _mentions(project: Project, scope: Scope, node: ast.AST, models: tuple[str, ...], trained: Trained) -> bool:
    """Whether code uses a trained model, itself or through functions of the project."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call):
            given = [*each.args, *(keyword.value for keyword in each.keywords)]
            if root_of(each.func) in models or any(path_of(argument) in models for argument in given):
                return True
            known = project.callee(scope.source, each)
            if known is not None and known[1].is_function and trained.hidden_in(*known):
                return True
    return False


def _refuse_what_no_program_can_do(
    scope: Scope,
    region: tuple[ast.stmt, ...],
    call: TrainingCall,
    later: tuple[ast.stmt, ...],
) -> None:
    source = scope.source
    assert call.subject is not None
    computed = {path for each in region for path in assigned(each)}
    for node in (*region, call.subject):
        for each in ast.walk(node):
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in _TO_PYTHON:
                raise Refused(source, each, "loss-from-item", ast.unparse(each))
            if _is_conversion(each) and reads(each) & computed:
                raise Refused(source, each, "loss-from-item", ast.unparse(each))
            if isinstance(each, ast.If | ast.While | ast.IfExp) and reads(each.test) & _tensors(computed, each.test):
                raise Refused(source, each, "data-dependent", ast.unparse(each.test))
            if isinstance(each, ast.Try | ast.Continue | ast.Break | ast.Return | ast.Yield | ast.Await):
                raise Refused(source, each, "data-dependent", "")
    for node in later:
        for each in ast.walk(node):
            if isinstance(each, ast.Continue | ast.Break | ast.Return):
                raise Refused(source, node, "data-dependent", ast.unparse(node).splitlines()[0].rstrip(":"))
            if (
                isinstance(each, ast.Call)
                and isinstance(each.func, ast.Attribute)
                and each.func.attr == "register_hook"
            ):
                raise Refused(source, each, "gradient-hooks", ast.unparse(each.func))
            if isinstance(each, ast.Attribute) and each.attr == "grad" and path_of(each) != "self.grad":
                raise Refused(source, each, "manual-gradients", ast.unparse(each))


def _tensors(computed: set[str], test: ast.expr) -> set[str]:
    """Computed variables whose values a test reads, other than to compare them with None."""
    if isinstance(test, ast.Compare) and all(isinstance(each, ast.Is | ast.IsNot) for each in test.ops):
        return set()
    return computed


def _is_conversion(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("float", "int")
