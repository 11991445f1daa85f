"""zero_grad, forward, loss, backward and step become one call."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.code.flow import uses
from pilotage.porting.analysis.devices import without_moves
from pilotage.porting.plan import PlannedStep
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.sources.edits import Edit, apply_edits
from pilotage.porting.sources.layout import indentation, indented, lines_of, unit_of_indentation
from pilotage.porting.writing.dialect import PROGRAMS

__all__ = ["RULE"]

NAME = "one-call"


def apply(porting: Porting) -> None:
    """Replace the statements of each step by a call of the wrapped model."""
    for planned in porting.plan.steps:
        step = planned.step
        first = step.place or (step.region[0] if step.region else step.anchor)
        inside = () if step.place is not None else step.region
        for statement in (*inside, *step.removed):
            if statement is not first:
                porting.remove(step.source, statement, NAME)
        text = indented(_text(porting, planned), indentation(step.source, first))
        start, end = step.source.span(first)
        line = step.source.line_start(first.lineno)
        if step.source.text[line:start].strip():
            porting.edit(step.source, start, end, text.strip(), NAME)
        else:
            porting.edit(step.source, line, line, text, NAME)
            porting.remove(step.source, first, NAME, with_comments=False)


def call_text(planned: PlannedStep) -> str:
    """The call that makes the whole step."""
    inputs = ", ".join(f"{each.stars}{each.given}" for each in planned.joint.inputs)
    return f"{', '.join(planned.joint.outputs)} = {planned.name}({inputs})"


def _text(porting: Porting, planned: PlannedStep) -> str:
    step = planned.step
    text = call_text(planned) + "\n"
    if step.accumulation is not None:
        text += f"{step.loss_name} = {step.loss_name}.mean()\n"
    if step.condition is None:
        return text
    unit = unit_of_indentation(step.source)
    test = step.source.segment(step.condition.test)
    other = "".join(_as_inference(porting, planned, each) for each in step.region)
    return f"if {test}:\n{indented(text, unit)}else:\n{indented(other, unit)}"


def _as_inference(porting: Porting, planned: PlannedStep, statement: ast.stmt) -> str:
    """A statement of the region, for when no step is made."""
    step = planned.step
    source = step.source
    start, end = lines_of(source, statement)
    name = porting.plan.other_branch(step)
    edits = without_moves(porting.project, source, statement, NAME)
    for path, use, is_written in uses(statement):
        call = source.parents.get(use)
        is_called = isinstance(call, ast.Call) and call.func is use
        if path in step.models and not is_written and is_called and name is not None:
            begin, stop = source.span(use)
            edits.append(Edit(start=begin, end=stop, text=name, rule=NAME))
    moved = [Edit(start=each.start - start, end=each.end - start, text=each.text, rule=NAME) for each in edits]
    text = apply_edits(source.text[start:end], moved)
    return indented(text if text.endswith("\n") else text + "\n", "", from_=indentation(source, statement))


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="zero_grad, forward, loss, backward and step become one call of the wrapped model, which returns "
    "the output and the loss.",
    why="The device runs the whole step as one program; Python in between would stop it at every operation.",
    example=Example(
        before="""\
import torch
from torch import nn

model = nn.Linear(8, 2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    output = model(x)
    loss = criterion(output, y)
    loss.backward()
    optimizer.step()
    print(loss.item())
""",
        after="""\
import torch
from torch import nn

model = nn.Linear(8, 2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    output, loss = training_model(x, y)
    print(loss.item())
""",
    ),
    apply=apply,
)
