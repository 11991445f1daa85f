"""Scripts that name no device: their model and what is given to it go to Gaudi."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pilotage.porting.analysis.kinds import Kind, kind_of
from pilotage.porting.analysis.training_calls import CallKind, training_call
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.hpu.mode_enum import mode_enum
from pilotage.porting.sources.layout import indentation
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target

__all__ = ["RULE"]

_MOVE = '.to("hpu")'


def _apply(porting: Porting) -> None:
    sources = porting.project.sources
    if mode_enum(porting.project) is not None or any(_names_a_device(each) for each in sources):
        return
    for source in sources:
        models = list(_models(porting, source))
        for statement in models:
            _place_model(porting, source, statement)
        names = {source.segment(each.targets[0]) for each in models}
        outputs = _outputs(source, names)
        for call in {id(each): each for each in _fed_calls(porting, source, names)}.values():
            for argument in call.args:
                if source.segment(argument) not in outputs:
                    _move(porting, source, argument, names)


def _names_a_device(source: Source) -> bool:
    """Whether a script names a device anywhere."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and node.attr in ("cuda", "device", "hpu"):
            return True
        if isinstance(node, ast.keyword) and node.arg == "device":
            return True
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(("cuda", "hpu")):
            return True
    return False


def _models(porting: Porting, source: Source) -> Iterator[ast.Assign]:
    """The assignments of modules whose parameters are given to an optimizer."""
    trained = {
        source.segment(node.func.value)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "parameters"
    }
    for node in ast.walk(source.tree):
        if (
            isinstance(node, ast.Assign)
            and len(node.targets) == 1
            and source.segment(node.targets[0]) in trained
            and kind_of(porting.project, source, node.value) is Kind.MODULE
        ):
            yield node


def _place_model(porting: Porting, source: Source, statement: ast.Assign) -> None:
    assert statement.end_lineno is not None
    after = source.line_start(statement.end_lineno + 1)
    text = f"{indentation(source, statement)}{source.segment(statement.targets[0])}{_MOVE}\n"
    porting.edit(source, after, after, text, RULE.name)


def _fed_calls(porting: Porting, source: Source, models: set[str]) -> Iterator[ast.Call]:
    """The calls of the model, and those that make a loss."""
    losses: set[str] = set()
    for node in ast.walk(source.tree):
        found = training_call(porting.project, source, node)
        if found is not None and found.kind is CallKind.BACKWARD and found.subject is not None:
            losses.add(source.segment(found.subject))
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and source.segment(node.func) in models:
            yield node
        if (
            isinstance(node, ast.Assign)
            and source.segment(node.targets[0]) in losses
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Name | ast.Attribute)
            and kind_of(porting.project, source, node.value.func) in (Kind.MODULE, Kind.FUNCTION)
        ):
            yield node.value


def _outputs(source: Source, models: set[str]) -> set[str]:
    """The variables that hold what a model returned, which is on its device."""
    return {
        source.segment(target)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and source.segment(node.value.func) in models
        for target in node.targets
    }


def _move(porting: Porting, source: Source, argument: ast.expr, models: set[str]) -> None:
    if isinstance(argument, ast.Call) and source.segment(argument.func) in models:
        return
    if isinstance(argument, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        _, end = source.span(argument)
        porting.edit(source, end, end, _MOVE, RULE.name)


RULE = Rule(
    name="hpu-placement",
    targets=frozenset({Target.HPU}),
    what="In a script that names no device, the model goes to `hpu`, and so does what is given to it and to its loss.",
    why="Otherwise the CPU would train.",
    example=Example(
        before="""\
import torch

model = torch.nn.Linear(2, 1)
loss_fn = torch.nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in batches:
    prediction = model(x)
    loss = loss_fn(prediction, y)
    loss.backward()
    optimizer.step()
""",
        after="""\
import torch

model = torch.nn.Linear(2, 1)
model.to("hpu")
loss_fn = torch.nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in batches:
    prediction = model(x.to("hpu"))
    loss = loss_fn(prediction, y.to("hpu"))
    loss.backward()
    optimizer.step()
""",
    ),
    apply=_apply,
)
