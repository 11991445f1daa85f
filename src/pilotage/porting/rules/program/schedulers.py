"""Schedules are followed by setOptimizer."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.code.flow import path_of
from pilotage.porting.analysis.code.origins import origins
from pilotage.porting.analysis.code.scopes import Function, Scope
from pilotage.porting.analysis.insertion import after_statement, before_statement
from pilotage.porting.analysis.kinds import Kind, kind_of
from pilotage.porting.plan import PlannedStep
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.sources.source import Source
from pilotage.porting.writing.dialect import POPTORCH

__all__ = ["RULE"]

NAME = "scheduler"
_KEEPS_THE_RATE = (
    *("StepLR", "MultiStepLR", "ExponentialLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "PolynomialLR"),
    "ReduceLROnPlateau",
)
"""Schedules that begin with the optimizer's own learning rate; others change it as soon as they are made."""


def apply(porting: Porting) -> None:
    """Send new values to the device after each change of them."""
    changes = [each for source in porting.project.sources for each in _changes(porting, source)]
    made = [each for source in porting.project.sources for each in _beginnings(porting, source)]
    if not changes and not made:
        return
    for planned in porting.plan.steps:
        known = _known_in(porting, planned)
        after_wrapping = [
            each for each in made if each[1] in known and _is_after_wrapping(porting, planned, *each[1:3])
        ]
        late = False
        for source, scope, statement, optimizer in [*changes, *after_wrapping]:
            if not _concerns(porting, source, optimizer, planned):
                continue
            names = known.get(scope)
            if names is None:
                late = True
                continue
            place = after_statement(source, statement)
            text = f"{place.indent}{names[0]}.setOptimizer({names[1]})\n"
            porting.edit(source, place.offset, place.offset, text, NAME)
        if late:
            _before_the_loop(porting, planned)


def _known_in(porting: Porting, planned: PlannedStep) -> dict[Scope, tuple[str, str]]:
    """The scopes that see the wrapped model, with its name and the optimizer's."""
    optimizer = ast.unparse(planned.step.optimizer)
    found: dict[Scope, tuple[str, str]] = {planned.step.scope: (planned.name, optimizer)}
    for site in porting.plan.site_of(planned):
        names = (site.name, site.expressions.get(optimizer, optimizer))
        found[site.scope] = names
        if site.scope.is_class:
            for node in site.scope.body:
                if isinstance(node, ast.FunctionDef):
                    found[porting.project.scopes[site.source].inside(node)] = names
    return found


def _changes(porting: Porting, source: Source) -> list[tuple[Source, Scope, ast.stmt, ast.expr]]:
    """The statements that change values of an optimizer: steps of schedules, and assignments to groups."""
    found: dict[ast.stmt, ast.expr] = {}
    for node in source.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "step":
            if kind_of(porting.project, source, node.func.value) is Kind.SCHEDULER:
                found[source.statement(node)] = node.func.value
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.Attribute) and node.iter.attr == "param_groups":
            if any(isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store) for each in ast.walk(node)):
                found[node] = node.iter.value
        elif isinstance(node, ast.Assign):
            groups = [each for target in node.targets for each in ast.walk(target) if _is_groups(each)]
            if groups and isinstance(groups[0], ast.Attribute):
                found[node] = groups[0].value
    return [
        (source, porting.project.scope_of(source, statement), _outermost(statement, source), subject)
        for statement, subject in found.items()
    ]


def _beginnings(porting: Porting, source: Source) -> list[tuple[Source, Scope, ast.stmt, ast.expr]]:
    """The statements that make a schedule which changes the learning rate at once, as a warm-up does."""
    found: list[tuple[Source, Scope, ast.stmt, ast.expr]] = []
    for node in source.nodes:
        if isinstance(node, ast.Call) and kind_of(porting.project, source, node) is Kind.SCHEDULER:
            name = porting.project.names[source].calls(node) or ""
            statement = source.statement(node)
            if isinstance(statement, ast.Assign) and statement.value is node and not name.endswith(_KEEPS_THE_RATE):
                scope = porting.project.scope_of(source, statement)
                found.append((source, scope, _outermost(statement, source), node))
    return found


def _is_after_wrapping(porting: Porting, planned: PlannedStep, scope: Scope, statement: ast.stmt) -> bool:
    """Whether the wrapped model exists when a statement runs, as far as the analysis can tell."""
    source = scope.source
    for site in porting.plan.site_of(planned):
        if site.insertion.source is source and _holds(scope, site.insertion.offset):
            return source.span(statement)[0] >= site.insertion.offset
    function = planned.step.scope.node
    return scope is planned.step.scope or (isinstance(function, Function) and _calls(scope, function.name))


def _holds(scope: Scope, offset: int) -> bool:
    """Whether a place is among the statements of a scope itself."""
    inner = [node for node in ast.walk(scope.node) if isinstance(node, Function) and node is not scope.node]
    if any(_is_inside(scope, node, offset) for node in inner):
        return False
    return not scope.is_function or _is_inside(scope, scope.node, offset)


def _is_inside(scope: Scope, node: ast.AST, offset: int) -> bool:
    start, end = scope.source.span(node)
    # A statement that is added after the last one stands at the beginning of the next line.
    return start < offset <= end + 1


def _calls(scope: Scope, name: str) -> bool:
    called = (node.func for node in ast.walk(scope.node) if isinstance(node, ast.Call))
    return any(name == (func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", None)) for func in called)


def _is_groups(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "param_groups"


def _concerns(porting: Porting, source: Source, subject: ast.expr, planned: PlannedStep) -> bool:
    """Whether a schedule or an optimizer belongs to a step, as far as is known."""
    made = {each.node for each in planned.optimizers}
    found = origins(porting.project, source, subject)
    if made & {each.node for each in found}:
        return True
    for each in found:
        if isinstance(each.node, ast.Call):
            given = [*each.node.args, *(keyword.value for keyword in each.node.keywords)]
            for argument in given:
                if made & {one.node for one in origins(porting.project, each.source, argument)}:
                    return True
    return source is planned.step.source and not any(isinstance(each.node, ast.Call) for each in found)


def _outermost(statement: ast.stmt, source: Source) -> ast.stmt:
    """A simple condition around a change belongs to it."""
    parent = source.parents[statement]
    is_simple = isinstance(parent, ast.If) and len(parent.body) == 1 and not parent.orelse
    return parent if is_simple and isinstance(parent, ast.stmt) else statement


def _before_the_loop(porting: Porting, planned: PlannedStep) -> None:
    """Read the optimizer's values before the loop, after changes that are made before the wrapped model is created."""
    step = planned.step
    place = before_statement(step.source, step.loop if step.loop is not None else step.anchor)
    text = f"{place.indent}{planned.name}.setOptimizer({path_of(step.optimizer)})\n"
    porting.edit(step.source, place.offset, place.offset, text, NAME)


RULE = Rule(
    name=NAME,
    targets=POPTORCH,
    what="A step of a schedule, an assignment to param_groups, and a schedule with a warm-up that is made after the "
    "wrapped model, are followed by setOptimizer.",
    why="PopTorch reads the values of an optimizer only in setOptimizer; without it the schedule would have no effect.",
    example=Example(
        before=PLAIN_STEP
        + """\
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
for epoch in range(30):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    scheduler.step()
""",
        after=PLAIN_STEP
        + """\
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
for epoch in range(30):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    scheduler.step()
    training_model.setOptimizer(optimizer)
""",
    ),
    apply=apply,
)
