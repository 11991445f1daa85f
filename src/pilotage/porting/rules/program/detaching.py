"""The device is freed between training and evaluation."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.insertion import after_statement
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.plain_example import PLAIN_LOOP
from pilotage.porting.sources.layout import unit_of_indentation
from pilotage.porting.writing.dialect import POPTORCH

__all__ = ["RULE"]

NAME = "detaching"


def apply(porting: Porting) -> None:
    """Detach after loops, if the script both trains and evaluates."""
    plan = porting.plan
    if not plan.evaluations:
        return
    for planned in plan.steps:
        step = planned.step
        if step.loop is not None and step.condition is None and not _evaluates(porting, step.loop):
            place = after_statement(step.source, step.loop)
            text = f"{place.indent}{planned.name}.detachFromDevice()\n"
            porting.edit(step.source, place.offset, place.offset, text, NAME)
    if not plan.steps:
        return
    for loop, (source, name) in {
        each.evaluation.loop: (each.evaluation.source, each.name)
        for each in plan.evaluations
        if isinstance(each.evaluation.loop, ast.For)
    }.items():
        place = after_statement(source, loop)
        unit = unit_of_indentation(source)
        text = f"{place.indent}if {name}.isAttachedToDevice():\n{place.indent}{unit}{name}.detachFromDevice()\n"
        porting.edit(source, place.offset, place.offset, text, NAME)


def _evaluates(porting: Porting, loop: ast.AST) -> bool:
    """Whether a loop that trains evaluates too, so that both programs stay on the device."""
    inside = set(ast.walk(loop))
    return any(each.evaluation.loop in inside for each in porting.plan.evaluations)


RULE = Rule(
    name=NAME,
    targets=POPTORCH,
    what="After a loop that trains, and after one that evaluates, the wrapped model frees the device; its "
    "next call takes it again.",
    why="Training and evaluation are two programs. On one device only one of them fits at a time.",
    example=Example(
        before="""\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=16, drop_last=True)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
        + PLAIN_LOOP
        + """\
model.eval()
with torch.no_grad():
    for x, y in loader:
        error = F.mse_loss(model(x), y)
""",
        after="""\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=16, drop_last=True)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
        + PLAIN_LOOP
        + """\
training_model.detachFromDevice()
model.eval()
with torch.no_grad():
    for x, y in loader:
        error = F.mse_loss(model(x), y)
    if inference_model.isAttachedToDevice():
        inference_model.detachFromDevice()
""",
    ),
    apply=apply,
)
