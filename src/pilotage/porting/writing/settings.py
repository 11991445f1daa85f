"""Numbers of a training step, such as a limit on gradients, as they are written where its wrapped model is made."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.clips import clips_of
from pilotage.porting.analysis.code.flow import root_of, uses
from pilotage.porting.analysis.code.scopes import Scope
from pilotage.porting.analysis.numbers import single_constant
from pilotage.porting.analysis.placing import Site
from pilotage.porting.analysis.step import TrainingStep, changes_in
from pilotage.porting.plan import PlannedStep
from pilotage.porting.porting import Porting
from pilotage.porting.sources.edits import Edit, apply_edits
from pilotage.porting.sources.source import Source

__all__ = ["clipping_at", "conditional", "limit_at", "setting_at", "setting_in"]


def setting_at(porting: Porting, planned: PlannedStep, site: Site, node: ast.expr) -> str | None:
    """An expression of the step as it is written at a site; None if it is not known there."""
    step = planned.step
    if changes_in(step, node):
        return None
    inlined = porting.plan.training.inlined.get(planned.needs, {})
    begin, end = step.source.span(node)
    edits = []
    for path, use, _ in uses(node):
        owner = step.scope.resolve(path)
        if owner is not None and owner.parent is None and site.source is not step.source:
            text = single_constant(porting.project, step.source, use)
        else:
            text = f"({inlined[path]})" if path in inlined else site.expressions.get(path, path)
        if text is None:
            return None
        start, stop = step.source.span(use)
        edits.append(Edit(start=start - begin, end=stop - begin, text=text, rule=""))
    return apply_edits(step.source.text[begin:end], edits)


def setting_in(porting: Porting, step: TrainingStep, node: ast.expr, source: Source, scope: Scope) -> str | None:
    """An expression of a step as it is written in another scope; None if it is not known there."""
    roots = {root_of(each) for each in ast.walk(node) if isinstance(each, ast.Name)}
    is_same = all(
        root is None or (step.scope.resolve(root) is not None and step.scope.resolve(root) is scope.resolve(root))
        for root in roots
    )
    if is_same and source is step.source:
        return step.source.segment(node)
    constant = single_constant(porting.project, step.source, node)
    if constant is not None:
        return constant
    # A settings object that both functions receive under the same name.
    if roots and all(root is not None and scope.resolve(root) is not None for root in roots):
        return step.source.segment(node)
    return None


def clipping_at(porting: Porting, planned: PlannedStep, site: Site) -> str | None:
    """The clipping of a step as an argument of `pilotage.training`; None if it cannot be written at a site."""
    limit = limit_at(porting, planned, site)
    name = "clip_grad_value" if clips_of(planned.step)[0].is_by_value else "clip_grad_norm"
    return None if limit is None else f"{name}={limit}"


def limit_at(porting: Porting, planned: PlannedStep, site: Site, *, otherwise: str = "None") -> str | None:
    """The limit on the gradients of a step as it is written at a site; None if it is not known there."""
    clip = clips_of(planned.step)[0]
    if clip.limit is None:
        return None
    limit, *tests = [setting_at(porting, planned, site, each) for each in (clip.limit, *clip.tests)]
    if limit is None or any(each is None for each in tests):
        return None
    return conditional(limit, [each for each in tests if each is not None], otherwise)


def conditional(limit: str, tests: list[str], otherwise: str = "None") -> str:
    """A limit that is none unless all tests are true."""
    if not tests:
        return limit
    if tests == [f"{limit} is not None"] and otherwise == "None":
        return limit
    if tests == [limit]:
        return f"{limit} or {otherwise}"
    return f"{limit} if {' and '.join(tests)} else {otherwise}"
