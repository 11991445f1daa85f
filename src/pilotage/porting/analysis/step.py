"""A training step as it is written in a script."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pilotage.porting.analysis.accumulation import Accumulation
from pilotage.porting.analysis.code.flow import assigned, reads
from pilotage.porting.analysis.code.scopes import Scope
from pilotage.porting.analysis.training_calls import TrainingCall
from pilotage.porting.sources.source import Source

__all__ = ["TrainingStep", "changes_in"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TrainingStep:
    """From zero_grad to step, with the statements in between.

    Large because each part of a step is ported in its own way.
    """

    source: Source
    scope: Scope
    """The function or module that it is in."""

    loop: ast.For | ast.While | None
    """The loop around it; None in a function that makes one step."""

    block: list[ast.stmt]
    anchor: ast.stmt
    """The statement of the block that contains the backward pass."""

    condition: ast.If | None
    """A condition that decides whether the step is made, such as ``if phase == "train"``."""

    loss: ast.expr
    """The expression that ``backward()`` is called on."""

    loss_name: str
    region: tuple[ast.stmt, ...]
    """The statements of the block from the model's call to the loss."""

    later: tuple[ast.stmt, ...]
    """The statements between them that the loss does not need."""

    removed: tuple[ast.stmt, ...]
    """The statements that the compiled step makes unnecessary."""

    calls: tuple[TrainingCall, ...]
    optimizer: ast.expr
    models: tuple[str, ...]
    """The variables whose parameters are trained, by their names here."""

    accumulation: Accumulation | None
    place: ast.stmt | None = None
    """The statement that the call replaces, if that is not the first of the region: ``optimizer.step(closure)``."""


def changes_in(step: TrainingStep, node: ast.expr) -> bool:
    """Whether a value changes while the step is repeated, because a loop around it binds a part of it."""
    optimizer = reads(step.optimizer)
    around = [each for each in step.source.ancestors(step.anchor) if isinstance(each, ast.For | ast.While)]
    # A loop that recreates the optimizer, such as one over folds, wraps the model again too.
    bound = [assigned(loop) for loop in around]
    return any(reads(node) & each for each in bound if not optimizer & each)
