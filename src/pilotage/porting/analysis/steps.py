"""Finds the training steps of a project."""

from __future__ import annotations

import ast
from collections import defaultdict

from pilotage.porting.analysis.accumulation import Accumulation, accumulation_of
from pilotage.porting.analysis.closures import calls_closure_once, closure_call
from pilotage.porting.analysis.code.flow import assigned, path_of, reads
from pilotage.porting.analysis.code.scopes import Scope
from pilotage.porting.analysis.refusal import Refusal, Refused
from pilotage.porting.analysis.regions import region_of
from pilotage.porting.analysis.step import TrainingStep
from pilotage.porting.analysis.trained import Trained
from pilotage.porting.analysis.training_calls import CallKind, TrainingCall, is_training_only, training_calls
from pilotage.porting.project import Project
from pilotage.porting.sources.source import Source

__all__ = ["find_steps"]

_Found = tuple[ast.stmt, TrainingCall]
_Loop = ast.For | ast.While
_UPDATES = (CallKind.STEP, CallKind.SCALER_STEP)


def find_steps(project: Project) -> tuple[list[TrainingStep], list[Refusal]]:
    """Every training step that can be converted, and the reasons why others cannot."""
    steps: list[TrainingStep] = []
    refusals: list[Refusal] = []
    for source in project.sources:
        for scope in project.scopes[source]:
            if scope.is_class:
                for _, call in training_calls(project, source, scope.body):
                    if call.kind is CallKind.BACKWARD:
                        detail = _text(call.subject)
                        refusals.append(
                            Refusal(source=source, node=call.call, rule="backward-not-reached", detail=detail)
                        )
                continue
            for loop, found in _by_loop(project, scope).items():
                try:
                    steps.append(_Finder(project, scope, loop, found).step())
                except Refused as refused:
                    refusals.append(refused.refusal)
    return steps, refusals


def _by_loop(project: Project, scope: Scope) -> dict[_Loop | None, list[_Found]]:
    """The training calls of a scope, by the innermost loop around each backward pass."""
    found = list(training_calls(project, scope.source, scope.body))
    loops = {_loop_around(scope.source, each[0], scope) for each in found if each[1].kind is CallKind.BACKWARD}
    groups: defaultdict[_Loop | None, list[_Found]] = defaultdict(list)
    for loop in loops:
        for statement, call in found:
            around = _loops_around(scope.source, statement, scope)
            is_zero_before = call.kind is CallKind.ZERO and all(each not in loops for each in around)
            if loop in around or loop is None or is_zero_before:
                groups[loop].append((statement, call))
    return groups


def _loops_around(source: Source, statement: ast.stmt, scope: Scope) -> list[_Loop]:
    found: list[_Loop] = []
    for each in source.ancestors(statement):
        if each is scope.node:
            break
        if isinstance(each, ast.For | ast.While):
            found.append(each)
    return found


def _loop_around(source: Source, statement: ast.stmt, scope: Scope) -> _Loop | None:
    loops = _loops_around(source, statement, scope)
    return loops[0] if loops else None


class _Finder:
    """Analyses one group of training calls."""

    def __init__(self, project: Project, scope: Scope, loop: _Loop | None, found: list[_Found]) -> None:
        self._project = project
        self._source = scope.source
        self._scope = scope
        self._loop = loop
        self._found = found

    def step(self) -> TrainingStep:
        """The step, or the reason why it cannot be converted."""
        closure = closure_call(self._scope)
        if closure is not None and not any(call.kind in _UPDATES for _, call in self._found):
            return self._step_of_closure(closure)
        optimizer = self._optimizer()
        backward = self._backward()
        anchor = self._outermost(backward[0])
        block, anchor, condition = self._block_of_loss(anchor, backward[1])
        trained = Trained(self._project, self._source, optimizer)
        region, later, models = region_of(self._project, self._scope, block, anchor, backward[1], trained)
        subject = backward[1].subject
        assert subject is not None
        name = path_of(subject) or "loss"
        if isinstance(subject, ast.NamedExpr):
            name, subject = subject.target.id, subject.value
        return TrainingStep(
            source=self._source,
            scope=self._scope,
            loop=self._loop,
            block=block,
            anchor=anchor,
            condition=condition,
            loss=subject,
            loss_name=name,
            region=region,
            later=later,
            removed=self._removed(),
            calls=tuple(call for _, call in self._found),
            optimizer=optimizer,
            models=models,
            accumulation=self._accumulation(),
        )

    def _step_of_closure(self, call: ast.Call) -> TrainingStep:
        """A step whose forward and backward are in a function that the optimizer calls once."""
        assert isinstance(call.func, ast.Attribute)
        assert isinstance(self._scope.node, ast.FunctionDef)
        outer = self._project.scope_of(self._source, call)
        backward = self._backward()
        subject = backward[1].subject
        place = self._source.statement(call)
        target = path_of(place.targets[0]) if isinstance(place, ast.Assign) else path_of(subject or call)
        is_plain = subject is not None and path_of(subject) is not None and target == path_of(subject)
        is_whole = isinstance(place, ast.Expr | ast.Assign) and place.value is call
        calls_once = calls_closure_once(self._project, self._source, call.func.value)
        if not (is_plain and is_whole and calls_once and self._scope.parent is outer and subject is not None):
            raise Refused(self._source, call, "optimizer-closure", _text(call.func.value))
        trained = Trained(self._project, self._source, call.func.value)
        region, later, models = region_of(
            self._project, self._scope, self._scope.body, backward[0], backward[1], trained
        )
        zeroed = [
            each
            for each, found in training_calls(self._project, self._source, outer.body)
            if found.kind is CallKind.ZERO
        ]
        if later:
            raise Refused(self._source, later[0], "optimizer-closure", _text(call.func.value))
        return TrainingStep(
            source=self._source,
            scope=outer,
            loop=_loop_around(self._source, place, outer),
            block=self._scope.body,
            anchor=place,
            condition=None,
            loss=subject,
            loss_name=path_of(subject) or "loss",
            region=region,
            later=(),
            removed=(self._scope.node, *zeroed),
            calls=tuple(each for _, each in self._found),
            optimizer=call.func.value,
            models=models,
            accumulation=None,
            place=place,
        )

    def _optimizer(self) -> ast.expr:
        calls = [call for _, call in self._found if call.kind in _UPDATES]
        subjects = {ast.dump(call.subject): call for call in calls if call.subject is not None}
        backward = next(call for _, call in self._found if call.kind is CallKind.BACKWARD)
        if len(subjects) > 1:
            second = list(subjects.values())[1]
            raise Refused(self._source, second.call, "two-optimizers", _text(second.subject))
        if not subjects:
            raise Refused(self._source, backward.call, "no-update", _text(backward.subject))
        (update,) = subjects.values()
        if update.kind is CallKind.STEP and (update.call.args or update.call.keywords):
            raise Refused(self._source, update.call, "optimizer-closure", _text(update.subject))
        assert update.subject is not None
        return update.subject

    def _backward(self) -> _Found:
        backwards = [each for each in self._found if each[1].kind is CallKind.BACKWARD]
        for statement, call in backwards:
            if not isinstance(statement, ast.Expr) or statement.value is not call.call:
                raise Refused(self._source, call.call, "manual-gradients", "the result of backward() is used")
            for keyword in call.call.keywords:
                if keyword.arg in ("retain_graph", "create_graph") and not _is_false(keyword.value):
                    raise Refused(self._source, call.call, "second-backward", keyword.arg or "")
            if call.call.args:
                raise Refused(self._source, call.call, "manual-gradients", "backward() is given a gradient")
        anchors = {self._outermost(statement) for statement, _ in backwards}
        if len(anchors) > 1:
            raise Refused(self._source, backwards[1][1].call, "second-backward", "")
        losses = {ast.dump(call.subject) for _, call in backwards if call.subject is not None}
        if len(losses) > 1:
            raise Refused(self._source, backwards[1][1].call, "second-backward", "")
        return backwards[0]

    def _outermost(self, statement: ast.stmt) -> ast.stmt:
        """The largest statement around this one that only trains."""
        best = statement
        for each in self._source.ancestors(statement):
            if not isinstance(each, ast.If) or not is_training_only(self._project, self._source, each):
                break
            best = each
        return best

    def _block_of_loss(self, anchor: ast.stmt, call: TrainingCall) -> tuple[list[ast.stmt], ast.stmt, ast.If | None]:
        """The block that computes the loss, its statement with the backward pass, and a condition around that."""
        assert call.subject is not None
        needed = reads(call.subject)
        condition = anchor if isinstance(anchor, ast.If) and not anchor.orelse else None
        statement = anchor
        while True:
            block = self._source.block(statement)
            before = block[: next(i for i, each in enumerate(block) if each is statement)]
            if path_of(call.subject) is None or any(needed & assigned(each) for each in before):
                return block, statement, condition
            parent = self._source.parents[statement]
            if not isinstance(parent, ast.If | ast.With):
                detail = path_of(call.subject) or ""
                raise Refused(self._source, call.call, "loss-from-elsewhere", detail)
            if isinstance(parent, ast.If):
                if condition is not None or parent.orelse:
                    raise Refused(self._source, parent, "data-dependent", "")
                condition = parent
            statement = parent

    def _removed(self) -> tuple[ast.stmt, ...]:
        found: dict[ast.stmt, None] = {}
        for statement, call in self._found:
            if isinstance(statement, ast.Assign):
                if call.kind is not CallKind.CLIP:
                    raise Refused(self._source, call.call, "manual-gradients", "the result of a training call is used")
            elif not isinstance(statement, ast.Expr) or statement.value is not call.call:
                # A loop that sets the gradients to None has no call; anything else is unknown.
                raise Refused(self._source, call.call, "manual-gradients", "the call is part of an expression")
            found[self._outermost(statement)] = None
        for node in ast.walk(self._loop or self._scope.node):
            if isinstance(node, ast.For) and is_training_only(self._project, self._source, node):
                found[node] = None
        return tuple(found)

    def _accumulation(self) -> Accumulation | None:
        for statement, call in self._found:
            if call.kind not in _UPDATES:
                continue
            for each in self._source.ancestors(statement):
                if each is self._loop or each is self._scope.node:
                    break
                if isinstance(each, ast.If):
                    found = accumulation_of(each, self._loop)
                    if found is not None:
                        if found.starts_late:
                            raise Refused(self._source, each, "shifted-accumulation", _text(found.count))
                        return found
        return None


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _text(node: ast.AST | None) -> str:
    return "" if node is None else ast.unparse(node)
