"""The calls that a compiled step makes unnecessary: zero_grad, backward, step, clipping, and those of a scaler."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from pilotage.porting.analysis.code.flow import path_of
from pilotage.porting.analysis.code.origins import origins
from pilotage.porting.analysis.code.scopes import Function
from pilotage.porting.analysis.kinds import Kind, kind_of, torch_name
from pilotage.porting.project import Project
from pilotage.porting.sources.source import Source

__all__ = ["CallKind", "TrainingCall", "is_training_only", "training_call", "training_calls", "walk_statements"]


_LIBRARIES = ("accelerate.", "lightning.", "lightning_fabric.", "pytorch_lightning.", "deepspeed.")


class CallKind(Enum):
    """The part of a call in training."""

    BACKWARD = "backward"
    STEP = "step"
    ZERO = "zero_grad"
    CLIP = "clip"
    SCALER_STEP = "scaler.step"
    SCALER_OTHER = "scaler"


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingCall:
    """One of these calls."""

    kind: CallKind
    call: ast.Call
    subject: ast.expr | None
    """The loss, the optimizer, or the clipped parameters."""

    scaler: ast.expr | None = None


def training_call(project: Project, source: Source, call: ast.AST) -> TrainingCall | None:
    """The part of a call in training; None for other calls."""
    if not isinstance(call, ast.Call):
        return None
    name = project.names[source].dotted(call.func)
    if name in ("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_", "torch.nn.utils.clip_grad_norm"):
        return TrainingCall(kind=CallKind.CLIP, call=call, subject=call.args[0] if call.args else None)
    if not isinstance(call.func, ast.Attribute) or name is not None:
        return None
    owner, method = call.func.value, call.func.attr
    if method == "backward" and not _is_of_a_library(project, source, owner):
        return _backward(project, source, call, owner)
    if method == "zero_grad":
        return TrainingCall(kind=CallKind.ZERO, call=call, subject=owner)
    if method == "step" and kind_of(project, source, owner) is Kind.OPTIMIZER:
        return TrainingCall(kind=CallKind.STEP, call=call, subject=owner)
    if method in ("step", "update", "unscale_") and kind_of(project, source, owner) is Kind.SCALER:
        if method == "step" and call.args:
            return TrainingCall(kind=CallKind.SCALER_STEP, call=call, subject=call.args[0], scaler=owner)
        return TrainingCall(kind=CallKind.SCALER_OTHER, call=call, subject=None, scaler=owner)
    return None


def training_calls(project: Project, source: Source, nodes: list[ast.stmt]) -> Iterator[tuple[ast.stmt, TrainingCall]]:
    """All training calls in statements, with the statement that each is in; inner functions are left out."""
    for statement in walk_statements(nodes):
        for node in _own_expressions(statement):
            found = training_call(project, source, node)
            if found is not None:
                yield statement, found


def walk_statements(nodes: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements and those inside of them, in the order of the text, without those of inner functions and classes."""
    for statement in nodes:
        yield statement
        if isinstance(statement, Function | ast.ClassDef):
            continue
        for name in ("body", "orelse", "finalbody"):
            yield from walk_statements([each for each in getattr(statement, name, []) if isinstance(each, ast.stmt)])
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from walk_statements(part.body)


def is_training_only(project: Project, source: Source, statement: ast.stmt) -> bool:
    """Whether a statement does only what a compiled step does anyway."""
    if isinstance(statement, ast.Pass):
        return True
    if isinstance(statement, ast.Expr):
        return training_call(project, source, statement.value) is not None
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
        # The norm that clipping returns; another rule refuses code that reads it.
        found = training_call(project, source, statement.value)
        return found is not None and found.kind is CallKind.CLIP
    if isinstance(statement, ast.If):
        bodies = [*statement.body, *statement.orelse]
        return all(is_training_only(project, source, each) for each in bodies)
    if isinstance(statement, ast.For):
        return _zeroes_gradients(statement)
    return False


def _backward(project: Project, source: Source, call: ast.Call, owner: ast.expr) -> TrainingCall:
    if (
        isinstance(owner, ast.Call)
        and isinstance(owner.func, ast.Attribute)
        and owner.func.attr == "scale"
        and owner.args
        and kind_of(project, source, owner.func.value) is Kind.SCALER
    ):
        return TrainingCall(kind=CallKind.BACKWARD, call=call, subject=owner.args[0], scaler=owner.func.value)
    return TrainingCall(kind=CallKind.BACKWARD, call=call, subject=owner)


def _is_of_a_library(project: Project, source: Source, owner: ast.expr) -> bool:
    """Whether ``owner.backward(loss)`` belongs to an accelerator, engine or fabric of another library."""
    makers = [torch_name(project, each) or "" for each in origins(project, source, owner)]
    return any(each.startswith(_LIBRARIES) for each in makers)


def _zeroes_gradients(loop: ast.For) -> bool:
    """Whether a loop is ``for p in model.parameters(): p.grad = None``."""
    target = path_of(loop.target)
    return len(loop.body) == 1 and all(
        isinstance(each, ast.Assign)
        and isinstance(each.targets[0], ast.Attribute)
        and each.targets[0].attr == "grad"
        and path_of(each.targets[0].value) == target
        and isinstance(each.value, ast.Constant)
        and each.value.value is None
        for each in loop.body
    )


def _own_expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement without those of the statements inside of it."""
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from ast.walk(child)
