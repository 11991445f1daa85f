"""Finds where loaders are made, and which of them feed training."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from pilotage.porting.analysis.code.flow import path_of
from pilotage.porting.analysis.code.iterations import iterated, iterations_around
from pilotage.porting.analysis.code.origins import origins
from pilotage.porting.analysis.code.scopes import Function, Scope
from pilotage.porting.analysis.evaluations import Evaluation
from pilotage.porting.analysis.kinds import LOADER
from pilotage.porting.analysis.step import TrainingStep
from pilotage.porting.project import Project
from pilotage.porting.sources.source import Source

__all__ = ["Loader", "find_loaders"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Loader:
    """One call of DataLoader."""

    source: Source
    scope: Scope
    call: ast.Call
    steps: tuple[TrainingStep, ...]
    """The steps that it feeds."""

    evaluations: tuple[Evaluation, ...]


def find_loaders(project: Project, steps: Iterable[TrainingStep], evaluations: Iterable[Evaluation]) -> list[Loader]:
    """Every loader of torch that is made in the project."""
    fed: dict[ast.AST, list[TrainingStep]] = {}
    for step in steps:
        for source, loop in _loops_of(project, step):
            for origin in origins(project, source, loop):
                fed.setdefault(origin.node, []).append(step)
    read: dict[ast.AST, list[Evaluation]] = {}
    for evaluation in evaluations:
        for origin in origins(project, evaluation.source, evaluation.loader) if evaluation.loader is not None else ():
            read.setdefault(origin.node, []).append(evaluation)
    found = []
    for source in project.sources:
        for node in source.nodes:
            if isinstance(node, ast.Call) and project.names[source].calls(node) == LOADER:
                found.append(
                    Loader(
                        source=source,
                        scope=project.scope_of(source, node),
                        call=node,
                        steps=tuple(fed.get(node, ())),
                        evaluations=tuple(read.get(node, ())),
                    )
                )
    return found


def _loops_of(project: Project, step: TrainingStep) -> list[tuple[Source, ast.expr]]:
    """What the loops around a step go through."""
    if step.loop is not None:
        return [(step.source, iterated(step.loop.iter))] if isinstance(step.loop, ast.For) else []
    return _loops_around_calls(project, step.scope.node, frozenset(), path_of(step.optimizer))


def _loops_around_calls(
    project: Project, function: ast.AST, seen: frozenset[ast.AST], optimizer: str | None = None
) -> list[tuple[Source, ast.expr]]:
    """What the loops around calls of a function go through; calls without an optimizer do not train."""
    found: list[tuple[Source, ast.expr]] = []
    if not isinstance(function, Function) or function in seen:
        return found
    for call in project.callers(function):
        default = call.is_left_out(function, optimizer) if optimizer is not None else None
        if isinstance(default, ast.Constant) and default.value is None:
            continue
        around = [each for _, each in iterations_around(call.source, call.call, call.scope.node) if each is not None]
        if around:
            found.append((call.source, around[0]))
        else:
            found += _loops_around_calls(project, call.scope.node, seen | {function})
    return found
