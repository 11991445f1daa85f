"""Gradient accumulation becomes an option."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.accumulation import division_by
from pilotage.porting.analysis.code.flow import path_of, reads
from pilotage.porting.analysis.code.iterations import iterated
from pilotage.porting.analysis.code.origins import origins
from pilotage.porting.analysis.code.scopes import Scope
from pilotage.porting.analysis.step import TrainingStep
from pilotage.porting.finding import Severity
from pilotage.porting.plan import PlannedStep
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.sources.layout import lines_of, unit_of_indentation
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target
from pilotage.porting.writing.dialect import PROGRAMS
from pilotage.porting.writing.settings import setting_at, setting_in

__all__ = ["RULE", "joins_batches"]

NAME = "accumulation"


def apply(porting: Porting) -> None:
    """Unwrap the statements that run once per update, join its batches, and report what the loop counts now."""
    for planned in porting.plan.steps:
        step = planned.step
        if step.accumulation is None:
            continue
        if _refuse_unknown_counts(porting, planned):
            continue
        if step.accumulation.condition not in step.removed:
            _unwrap(porting, step)
        if joins_batches(porting, step):
            _join_batches(porting, planned)
        else:
            _keep_lengths(porting, planned)
        _stop_undoing_division(porting, step)
        count = ast.unparse(step.accumulation.count)
        porting.find(
            step.source,
            step.accumulation.condition,
            NAME,
            Severity.WARNING,
            f"Each call now takes the {count} batches of an update, so the loop runs once for each update: its index "
            f"{_lengths(porting, step)} updates, and the loss is the mean of the batches.{_tail(porting, step)}",
        )


def joins_batches(porting: Porting, step: TrainingStep) -> bool:
    """Whether `pilotage.batches` joins the batches of an update; if not, the loader makes larger ones."""
    return porting.target is Target.PILOTAGE and isinstance(step.loop, ast.For)


def _refuse_unknown_counts(porting: Porting, planned: PlannedStep) -> bool:
    step = planned.step
    assert step.accumulation is not None
    for site in porting.plan.site_of(planned):
        if setting_at(porting, planned, site, step.accumulation.count) is None:
            porting.find(
                step.source,
                step.accumulation.count,
                NAME,
                Severity.REFUSED,
                "The number of accumulated batches is not known where the model is wrapped, or changes while the "
                "script trains.",
                "Write it as a constant, or give it to the function that makes the optimizer.",
            )
            return True
    return False


def _join_batches(porting: Porting, planned: PlannedStep) -> None:
    """Iterate over the batches of whole updates, and adjust divisions by the length of the loader."""
    step = planned.step
    source = step.source
    assert isinstance(step.loop, ast.For)
    loader = iterated(step.loop.iter)
    text = f"pilotage.batches({source.segment(loader)}, {planned.name})"
    porting.replace(source, loader, text, NAME)
    inside = {each for node in step.removed for each in ast.walk(node)}
    for node in ast.walk(step.scope.node):
        is_later = isinstance(node, ast.expr) and node not in inside and source.place(node) > source.place(step.loop)
        if is_later and isinstance(node, ast.Call) and _is_length(node) and ast.dump(node.args[0]) == ast.dump(loader):
            porting.replace(source, node.args[0], text, NAME)


def _keep_lengths(porting: Porting, planned: PlannedStep) -> None:
    """Keep counting single batches in other computations with the length, such as a schedule."""
    step = planned.step
    assert step.accumulation is not None
    made = {each.call for each in porting.plan.loaders if step in each.steps}
    for source in porting.project.sources:
        for node in source.nodes:
            if not isinstance(node, ast.Call) or not _is_length(node):
                continue
            scope = porting.project.scope_of(source, node)
            is_of_loop = scope is step.scope and source.place(node) > source.place(step.loop or step.anchor)
            if is_of_loop or not made & {each.node for each in origins(porting.project, source, node.args[0])}:
                continue
            count = _count_in(porting, planned, source, scope)
            parent = source.parents[node]
            if isinstance(parent, ast.BinOp) and parent.left is node and _divides(source, parent, count):
                porting.edit(source, source.span(node)[1], source.span(parent)[1], "", NAME)
            elif count is not None:
                text = f"{source.segment(node)} * {count}"
                is_factor = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mult | ast.Add)
                porting.replace(source, node, text if is_factor or isinstance(parent, ast.Call) else f"({text})", NAME)
            else:
                porting.find(
                    source,
                    node,
                    NAME,
                    Severity.WARNING,
                    "This length counts updates now, and batches in the original.",
                    "Multiply it by the number of accumulated batches if a schedule or the like depends on it.",
                )


def _stop_undoing_division(porting: Porting, step: TrainingStep) -> None:
    """Leave out ``* n`` where the script shows a loss that it has divided by n: the program's loss is not divided."""
    if not _divides_its_loss(step):
        return
    source = step.source
    assert step.accumulation is not None
    gone = {each for node in (*step.region, *step.removed) for each in ast.walk(node)}
    for node in ast.walk(step.loop or step.scope.node):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult) or node in gone:
            continue
        for factor, kept in ((node.right, node.left), (node.left, node.right)):
            if ast.dump(factor) == ast.dump(step.accumulation.count) and step.loss_name in reads(kept):
                porting.replace(source, node, source.segment(kept), NAME)
                break


def _divides_its_loss(step: TrainingStep) -> bool:
    """Whether the variable of the loss holds the loss divided by the number of passes."""
    assert step.accumulation is not None
    count = step.accumulation.count
    for statement in (each for node in (*step.region, *step.removed) for each in ast.walk(node)):
        if isinstance(statement, ast.AugAssign):
            is_divided = isinstance(statement.op, ast.Div) and ast.dump(statement.value) == ast.dump(count)
            found = path_of(statement.target) if is_divided else None
        elif isinstance(statement, ast.Assign):
            found = path_of(statement.targets[0]) if division_by(statement.value, count) is not None else None
        else:
            continue
        if found == step.loss_name:
            return True
    return False


def _count_in(porting: Porting, planned: PlannedStep, source: Source, scope: Scope) -> str | None:
    """The number of accumulated batches as it is written in a scope."""
    step = planned.step
    assert step.accumulation is not None
    for site in porting.plan.site_of(planned):
        if site.scope is scope:
            return setting_at(porting, planned, site, step.accumulation.count)
    return setting_in(porting, step, step.accumulation.count, source, scope)


def _divides(source: Source, node: ast.BinOp, count: str | None) -> bool:
    return isinstance(node.op, ast.Div | ast.FloorDiv) and source.segment(node.right) == count


def _is_length(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and bool(node.args)


def _lengths(porting: Porting, step: TrainingStep) -> str:
    return "counts" if joins_batches(porting, step) else "and its length count"


def _tail(porting: Porting, step: TrainingStep) -> str:
    """What happens to batches that do not fill an update."""
    assert step.accumulation is not None
    if joins_batches(porting, step):
        return " Batches at the end of an epoch that do not fill an update make one of their own, with their mean."
    return " An incomplete group at the end of an epoch makes no update." if step.accumulation.has_tail else ""


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
    assert condition.end_lineno is not None
    porting.unindent(source, condition.body[0].lineno, condition.end_lineno, unit_of_indentation(source), NAME)


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="``if (i + 1) % n == 0`` around the update becomes gradientAccumulation(n): a call takes n "
    "batches and makes one update. The division of the loss by n is removed, and so is a multiplication that "
    "undoes it; without a division, the gradients are summed. With pilotage it becomes "
    "gradient_accumulation=n, and the loop goes through pilotage.batches(loader, training_model).",
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
