"""Clipping becomes an option of the optimizer, or of the wrapped model."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.clips import Clip, clips_all, clips_of
from pilotage.porting.analysis.code.flow import assigned, reads
from pilotage.porting.analysis.code.origins import Origin
from pilotage.porting.analysis.kinds import torch_name
from pilotage.porting.analysis.step import TrainingStep, changes_in
from pilotage.porting.finding import Severity
from pilotage.porting.plan import PlannedStep
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.rules.program.optimizers import SUPPORTED
from pilotage.porting.target import Target
from pilotage.porting.writing.dialect import PROGRAMS
from pilotage.porting.writing.settings import clipping_at, conditional, limit_at, setting_in
from pilotage.porting.writing.signatures import argument_place

__all__ = ["RULE"]

NAME = "clipping"
_WITHOUT_CLIPPING = (
    "poptorch's RMSprop does not clip gradients.",
    "Use SGD, Adam or AdamW, or leave out the clipping.",
)
Reason = tuple[str, str]
"""Why something is refused, and what to do."""


def apply(porting: Porting) -> None:
    """Move the clipping of each step to the optimizer or the wrapped model."""
    for planned in porting.plan.steps:
        for clip in clips_of(planned.step)[:1]:
            reason = _reason_against(porting, planned, clip)
            if reason is None and porting.target is Target.PILOTAGE:
                reason = _reason_at_sites(porting, planned)
            elif reason is None:
                reason = _limit_optimizers(porting, planned, clip)
            if reason is not None:
                porting.find(planned.step.source, clip.call, NAME, Severity.REFUSED, *reason)


def _reason_at_sites(porting: Porting, planned: PlannedStep) -> Reason | None:
    """Why `pilotage.training` cannot be given the limit where it is called."""
    if all(clipping_at(porting, planned, site) is not None for site in porting.plan.site_of(planned)):
        return None
    return (
        "The limit of the gradients is not known where the model is wrapped, or changes while the script trains.",
        "Write it as a constant, or give it to the function that makes the optimizer.",
    )


def _limit_optimizers(porting: Porting, planned: PlannedStep, clip: Clip) -> Reason | None:
    """Give poptorch's optimizers the limit, where they are made or before they are used; returns why it cannot be."""
    planned_edits: list[tuple[Origin, str]] = []
    for origin in planned.optimizers:
        name = torch_name(porting.project, origin) or ""
        if _does_not_clip(name) or name.rpartition(".")[2] not in SUPPORTED:
            if _does_not_clip(name):
                porting.find(origin.source, origin.node, NAME, Severity.BY_HAND, *_WITHOUT_CLIPPING)
            continue
        limit = _limit_at(porting, planned.step, clip, origin)
        if limit is None:
            return _limit_at_sites(porting, planned)
        planned_edits.append((origin, limit))
    for origin, limit in planned_edits:
        assert isinstance(origin.node, ast.Call)
        offset, text = argument_place(origin.source, origin.node, f"max_grad_norm={limit}")
        porting.edit(origin.source, offset, offset, text, NAME)
    return None


def _limit_at_sites(porting: Porting, planned: PlannedStep) -> Reason | None:
    """Set the limit of the optimizer right before the model is wrapped."""
    optimizer = ast.unparse(planned.step.optimizer)
    sites = porting.plan.site_of(planned)
    limits = [limit_at(porting, planned, site, otherwise='float("inf")') for site in sites]
    if any(each is None for each in limits):
        return (
            "The largest norm is neither known where the optimizer is made nor where the model is wrapped.",
            "Give it to the function that makes the optimizer, or write it as a constant.",
        )
    for site, limit in zip(sites, limits, strict=True):
        name = site.expressions.get(optimizer, optimizer)
        place = site.insertion
        porting.edit(place.source, place.offset, place.offset, f"{place.indent}{name}.max_grad_norm = {limit}\n", NAME)
    return None


def _reason_against(porting: Porting, planned: PlannedStep, clip: Clip) -> Reason | None:
    step = planned.step
    if len({ast.dump(each.call) for each in clips_of(step)}) > 1:
        return (
            "Gradients are clipped more than once, and a program clips all of them together, by one limit.",
            "Clip once, with the parameters of all modules.",
        )
    if clip.is_by_value and porting.target is not Target.PILOTAGE:
        return "Gradients cannot be clipped by value in a program.", "Clip by norm, with clip_grad_norm_."
    if clip.limit is None or clip.is_otherwise:
        return "The limit of the gradients is not known.", "Give it as the second argument, and not in an else."
    if not clips_all(porting.project, step, clip, planned.optimizers):
        return (
            "Only some of the trained parameters are clipped, as far as can be seen, and a program clips all of them "
            "together.",
            "Clip the parameters of the whole model, or leave out the clipping.",
        )
    kind = clip.keyword("norm_type")
    kind = kind if kind is not None else (clip.call.args[2] if len(clip.call.args) > 2 else None)
    if kind is not None and not (isinstance(kind, ast.Constant) and kind.value == 2) and not clip.is_by_value:
        return "Only the Euclidean norm of gradients can be clipped in a program.", "Leave out norm_type."
    strict = clip.keyword("error_if_nonfinite")
    if strict is not None and not (isinstance(strict, ast.Constant) and not strict.value):
        return "A program does not raise an error for gradients that are not finite.", "Leave out error_if_nonfinite."
    if _is_norm_read(step, clip):
        return "The norm of the gradients is used, and a program does not return it.", "Leave out what uses it."
    names = [torch_name(porting.project, each) or "" for each in planned.optimizers]
    if porting.target is not Target.PILOTAGE and all(_does_not_clip(each) for each in names):
        return _WITHOUT_CLIPPING
    return None


def _does_not_clip(name: str) -> bool:
    return name.endswith("RMSprop")


def _is_norm_read(step: TrainingStep, clip: Clip) -> bool:
    """Whether something uses the norm that clipping returns."""
    names = assigned(step.source.statement(clip.call))
    return any(path in names for path in reads(step.scope.body))


def _is_bound_before(origin: Origin, path: str) -> bool:
    """Whether a variable has its value when the optimizer is made, if the same scope binds it."""
    bindings = origin.scope.bindings.get(path, ()) if origin.scope.resolve(path) is origin.scope else ()
    place = origin.source.place(origin.node)
    return not bindings or any(isinstance(each, ast.arg) or origin.source.place(each) < place for each in bindings)


def _limit_at(porting: Porting, step: TrainingStep, clip: Clip, origin: Origin) -> str | None:
    """The largest norm as it is written where the optimizer is made."""
    assert clip.limit is not None
    if any(changes_in(step, each) for each in (clip.limit, *clip.tests)):
        return None
    nodes = (clip.limit, *clip.tests)
    if not all(_is_bound_before(origin, path) for node in nodes for path in reads(node)):
        return None
    limit, *tests = [setting_in(porting, step, each, origin.source, origin.scope) for each in nodes]
    if limit is None or any(each is None for each in tests):
        return None
    return conditional(limit, [each for each in tests if each is not None])


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="clip_grad_norm_ becomes max_grad_norm of poptorch's optimizer. With pilotage it becomes clip_grad_norm of "
    "pilotage.training, and clip_grad_value_ becomes clip_grad_value. Another norm, several calls, some of the "
    "parameters only, and code that reads the norm are refused; with poptorch, clipping by value is too.",
    why="Gradients exist only inside of the program, so only the program can clip them.",
    example=Example(
        before=PLAIN_STEP
        + """\
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
""",
        after="""\
import torch
import torch.nn.functional as F
from torch import nn

model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, max_grad_norm=1.0)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
""",
    ),
    apply=apply,
)
