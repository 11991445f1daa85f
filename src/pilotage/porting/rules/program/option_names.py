"""The variables that hold the options, scope by scope."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pilotage.porting.analysis.insertion import Insertion, before_statement
from pilotage.porting.analysis.loaders import Loader
from pilotage.porting.analysis.numbers import single_constant
from pilotage.porting.analysis.placing import Site
from pilotage.porting.plan import PlannedStep
from pilotage.porting.porting import Porting
from pilotage.porting.sources.source import Source
from pilotage.porting.writing.settings import setting_at

__all__ = ["ScopeOptions", "all_options", "options_at", "options_of_loader"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ScopeOptions:
    """The options of one scope."""

    name: str
    site: Site
    steps: tuple[PlannedStep, ...]
    place: Insertion
    loaders: tuple[Loader, ...]
    """The loaders that use the variable."""

    counts: dict[PlannedStep, str | None]
    """How many batches each step accumulates, as it is written at the place."""


def all_options(porting: Porting) -> list[ScopeOptions]:
    """The options of every scope in which a training model is made."""
    known: list[ScopeOptions] | None = porting.known.get("options")
    if known is None:
        known = porting.known["options"] = _all_options(porting)
    return known


def _all_options(porting: Porting) -> list[ScopeOptions]:
    found: dict[object, ScopeOptions] = {}
    for site in porting.plan.training.sites:
        if site.scope in found:
            continue
        steps = tuple(each for each in porting.plan.steps if site in porting.plan.site_of(each))
        loaders = [
            each
            for each in porting.plan.loaders
            if each.scope is site.scope and each.source is site.source and not _only_evaluates(each, steps)
        ]
        place = site.insertion
        counts = {each: _count(porting, each, site) for each in steps}
        kept: list[Loader] = []
        for loader in loaders:
            statement = loader.source.statement(loader.call)
            before = _common_place(site.source, statement, site.insertion.offset, _names_in(counts))
            if before is None and (constants := _constant_counts(porting, steps)) is not None:
                # The variable of the number is assigned later.
                counts = constants
                before = _common_place(site.source, statement, site.insertion.offset, [])
            if before is not None:
                kept.append(loader)
                place = before if before.offset < place.offset else place
        name = "options" if site.scope.resolve("options") is None else "poptorch_options"
        found[site.scope] = ScopeOptions(
            name=name, site=site, steps=steps, place=place, loaders=tuple(kept), counts=counts
        )
    return list(found.values())


def options_at(porting: Porting, site: Site) -> str:
    """The variable at a site."""
    return next(each.name for each in all_options(porting) if each.site.scope is site.scope)


def options_of_loader(porting: Porting, loader: Loader) -> str | None:
    """The variable that a loader can use; None if it has to make options of its own."""
    return next((each.name for each in all_options(porting) if loader in each.loaders), None)


def _only_evaluates(loader: Loader, steps: tuple[PlannedStep, ...]) -> bool:
    """Whether a loader must not get the options of training, because they accumulate gradients."""
    accumulates = any(each.step.accumulation is not None for each in steps)
    return accumulates and not loader.steps


def _count(porting: Porting, planned: PlannedStep, site: Site) -> str | None:
    """The number of accumulated batches as it is written at a site."""
    accumulation = planned.step.accumulation
    return None if accumulation is None else setting_at(porting, planned, site, accumulation.count)


def _constant_counts(porting: Porting, steps: tuple[PlannedStep, ...]) -> dict[PlannedStep, str | None] | None:
    """The numbers of accumulated batches themselves; None if they are not known."""
    found: dict[PlannedStep, str | None] = {}
    for each in steps:
        accumulation = each.step.accumulation
        if accumulation is not None:
            number = single_constant(porting.project, each.step.source, accumulation.count)
            if number is None:
                return None
            found[each] = number
    return found


def _names_in(counts: dict[PlannedStep, str | None]) -> list[str]:
    """The variables that the numbers of accumulated batches are made of."""
    trees = [ast.parse(text or "", mode="exec") for text in counts.values()]
    return [each.id for tree in trees for each in ast.walk(tree) if isinstance(each, ast.Name)]


def _common_place(source: Source, statement: ast.stmt, offset: int, names: list[str]) -> Insertion | None:
    """The place before a statement, or before the one around it in the block of the site; None if neither is there."""
    node: ast.AST = statement
    while isinstance(node, ast.stmt):
        block = source.block(node)
        start, end = source.span(block[0])[0], source.span(block[-1])[1]
        if source.line_start(block[0].lineno) <= offset <= end + 2 and start <= source.span(node)[0] < offset:
            place = before_statement(source, node)
            return place if _are_bound(block, node, names) else None
        node = source.parents[node]
        while not isinstance(node, ast.stmt | ast.Module):
            node = source.parents[node]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return None
    return None


def _are_bound(block: list[ast.stmt], statement: ast.stmt, names: list[str]) -> bool:
    """Whether a block binds none of these variables from a statement on, so that they have their values before it."""
    index = next(i for i, each in enumerate(block) if each is statement)
    later = {
        each.id
        for node in block[index:]
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    return not any(name in later for name in names)
