"""Evaluation goes through a wrapped model of its own."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.code.flow import path_of
from pilotage.porting.analysis.code.scopes import Scope
from pilotage.porting.analysis.devices import without_moves
from pilotage.porting.analysis.evaluations import Evaluation
from pilotage.porting.plan import PlannedEvaluation
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.program.training_model import pass_on
from pilotage.porting.sources.edits import Edit, apply_edits
from pilotage.porting.target import Target
from pilotage.porting.writing.dialect import PROGRAMS, dialect_of

__all__ = ["RULE"]

NAME = "inference-model"


def apply(porting: Porting) -> None:
    """Wrap the models of evaluations, and call the wrapped ones."""
    dialect = dialect_of(porting.target)
    for site in porting.plan.inference.sites:
        (model,) = site.expressions.values()
        place = site.insertion
        text = f"{place.indent}{site.name} = {dialect.inference.format(model)}\n"
        porting.edit(place.source, place.offset, place.offset, text, NAME)
    for planned in porting.plan.evaluations:
        _convert(porting, planned)
    if porting.target is not Target.PILOTAGE:
        _set_modes(porting)
    pass_on(porting, porting.plan.inference, NAME)


def _convert(porting: Porting, planned: PlannedEvaluation) -> None:
    evaluation = planned.evaluation
    source = evaluation.source
    for call in evaluation.calls:
        batch = call.args[0] if call.args else None
        is_checked = (
            batch is not None
            and path_of(_without_move(batch)) is not None
            and evaluation.loader is not None
            and porting.plan.may_be_incomplete(evaluation)
        )
        if not is_checked or call.end_lineno == call.lineno:
            porting.replace(source, call.func, planned.name, NAME)
        if is_checked and batch is not None and evaluation.loader is not None:
            size = f"{source.segment(evaluation.loader)}.batch_size"
            if call.end_lineno != call.lineno:
                name = path_of(_without_move(batch))
                chosen = f"{planned.name} if len({name}) == {size} else {source.segment(call.func)}"
                porting.replace(source, call.func, f"({chosen})", NAME)
                continue
            given = source.text[source.span(call.func)[1] : source.span(call)[1]]
            name = path_of(_without_move(batch))
            other = f"{source.segment(call.func)}{_plain(porting, evaluation, call, given)}"
            end = source.span(call)[1]
            opens, closes = ("(", ")") if _needs_brackets(source.parents[call]) else ("", "")
            start = source.span(call)[0]
            if opens:
                porting.edit(source, start, start, opens, NAME)
            porting.edit(source, end, end, f" if len({name}) == {size} else {other}{closes}", NAME)


def _set_modes(porting: Porting) -> None:
    """Put the wrapped model in evaluation mode where the module was: it takes the modes that it is given itself."""
    for scope, model, name, start in _known(porting):
        for node in ast.walk(scope.node):
            is_mode = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "eval"
            if not is_mode or porting.project.scope_of(scope.source, node) is not scope:
                continue
            assert isinstance(node, ast.Call)
            assert isinstance(node.func, ast.Attribute)
            if path_of(node.func.value) == model and scope.source.span(node)[0] >= start:
                porting.replace(scope.source, node.func.value, name, NAME)


def _known(porting: Porting) -> list[tuple[Scope, str, str, int]]:
    """The scopes that see a wrapped model: the model's name there, the wrapped one's, and from where on."""
    plan = porting.plan
    found = [(each.evaluation.scope, each.evaluation.model, each.name, 0) for each in plan.evaluations]
    for planned in plan.steps:
        name = plan.other_branch(planned.step)
        if name is not None:
            found.append((planned.step.scope, planned.step.models[0], name, 0))
    for site in plan.inference.sites:
        (model,) = site.expressions.values()
        if site.scope.is_class:
            for node in site.scope.body:
                if isinstance(node, ast.FunctionDef) and node.name != "__init__":
                    found.append((porting.project.scopes[site.source].inside(node), model, site.name, 0))
        else:
            found.append((site.scope, model, site.name, site.insertion.offset))
    return found


def _plain(porting: Porting, evaluation: Evaluation, call: ast.Call, given: str) -> str:
    """The arguments of a call without moves to a device."""
    source = evaluation.source
    start = source.span(call.func)[1]
    edits = [
        Edit(start=each.start - start, end=each.end - start, text=each.text, rule=NAME)
        for argument in (*call.args, *(each.value for each in call.keywords))
        for each in without_moves(porting.project, source, argument, NAME)
    ]
    return apply_edits(given, edits)


def _without_move(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda"):
        node = node.func.value
    return node


def _needs_brackets(parent: ast.AST) -> bool:
    """Whether a conditional expression needs brackets there."""
    return not isinstance(parent, ast.Assign | ast.AnnAssign | ast.Return | ast.Expr | ast.Call | ast.keyword)


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="In loops over a loader without gradients, the model's calls go to an inference model, which is "
    "made once. An incomplete last batch goes to the module itself, which has the trained weights.",
    why="Evaluation is another program than training. It is compiled for one size of batch, and no "
    "sample must be left out of a result.",
    example=Example(
        before="""\
import torch
from torch import nn
from torch.utils.data import DataLoader

model = nn.Linear(8, 2)
loader = DataLoader(dataset, batch_size=16)
model.eval()
with torch.no_grad():
    for x, y in loader:
        scores = model(x)
""",
        after="""\
import torch
from torch import nn
from torch.utils.data import DataLoader

model = nn.Linear(8, 2)
loader = DataLoader(dataset, batch_size=16)
inference_model = poptorch.inferenceModel(model)
inference_model.eval()
with torch.no_grad():
    for x, y in loader:
        scores = inference_model(x) if len(x) == loader.batch_size else model(x)
""",
    ),
    apply=apply,
)
