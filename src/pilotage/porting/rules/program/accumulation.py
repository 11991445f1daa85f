"""Gradient accumulation becomes an option."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.step import TrainingStep
from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.sources.layout import lines_of, unit_of_indentation
from pilotage.porting.writing.dialect import PROGRAMS

__all__ = ["RULE"]

NAME = "accumulation"


def apply(porting: Porting) -> None:
    """Unwrap what is done once for each update, and say what the loop counts now."""
    for planned in porting.plan.steps:
        step = planned.step
        if step.accumulation is None:
            continue
        if step.accumulation.condition not in step.removed:
            _unwrap(porting, step)
        count = ast.unparse(step.accumulation.count)
        tail = " An incomplete group at the end of an epoch makes no update." if step.accumulation.has_tail else ""
        porting.find(
            step.source,
            step.accumulation.condition,
            NAME,
            Severity.WARNING,
            f"Each call now takes the {count} batches of an update, so the loop runs once for each update: its index "
            f"and len(loader) count updates, and the loss is the mean of the batches.{tail}",
        )


def _unwrap(porting: Porting, step: TrainingStep) -> None:
    """Take the statements out of ``if (i + 1) % n == 0``; every call makes an update."""
    source = step.source
    assert step.accumulation is not None
    condition = step.accumulation.condition
    if condition.orelse:
        porting.find(
            source,
            condition,
            NAME,
            Severity.REFUSED,
            "The script does something else between updates, and a program makes an update in every call.",
            "Leave out the else.",
        )
        return
    start, _ = lines_of(source, condition)
    porting.edit(source, start, source.line_start(condition.body[0].lineno), "", NAME)
    unit = unit_of_indentation(source)
    assert condition.end_lineno is not None
    for number in range(condition.body[0].lineno, condition.end_lineno + 1):
        if source.line(number).startswith(unit):
            begin = source.line_start(number)
            porting.edit(source, begin, begin + len(unit), "", NAME)


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="``if (i + 1) % n == 0`` around the update becomes gradientAccumulation(n): a call takes n "
    "batches and makes one update. The division of the loss by n goes; without one, the gradients are "
    "summed.",
    why="The program accumulates by itself, without returning to Python between the batches.",
    example=Example(
        before=PLAIN_STEP
        + """\
loader = torch.utils.data.DataLoader(dataset, batch_size=4, drop_last=True)
for i, (x, y) in enumerate(loader):
    loss = F.mse_loss(model(x), y) / 8
    loss.backward()
    if (i + 1) % 8 == 0:
        optimizer.step()
        optimizer.zero_grad()
        print("updated")
""",
        after=PLAIN_STEP
        + """\
loader = torch.utils.data.DataLoader(dataset, batch_size=4, drop_last=True)
for i, (x, y) in enumerate(loader):
    loss = F.mse_loss(model(x), y) / 8
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("updated")
""",
        finds="the loop runs once for each update",
    ),
    apply=apply,
)
