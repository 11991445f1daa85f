"""Control flow that depends on data."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.code.flow import assigned, reads
from pilotage.porting.analysis.code.scopes import Function
from pilotage.porting.analysis.kinds import is_module_class
from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.sources.source import Source
from pilotage.porting.writing.dialect import PROGRAMS

__all__ = ["RULE"]

NAME = "data-dependent"
_REMEDY = "Compute both ways and choose with torch.where, or make the decision outside of the step."
_VALUES = {"item", "tolist", "any", "all", "sum", "mean", "max", "min", "norm", "std", "var", "equal", "allclose"}


def apply(porting: Porting) -> None:
    """Refuse steps and forward methods that depend on the values of tensors."""
    for each in porting.plan.refusals:
        if each.rule == NAME:
            where = f": {each.detail!r}" if each.detail else ""
            message = f"Whether or how the step runs depends on the values of tensors{where}."
            porting.find(each.source, each.node, NAME, Severity.REFUSED, message, _REMEDY)
    for source in porting.project.sources if porting.plan.steps else ():
        for node in source.nodes:
            if isinstance(node, ast.ClassDef) and is_module_class(porting.project, source, node):
                for method in node.body:
                    if isinstance(method, Function) and method.name == "forward":
                        _look_into(porting, source, method)


def _look_into(porting: Porting, source: Source, method: Function) -> None:
    tensors = {each.arg for each in method.args.args[1:]} | {path for each in method.body for path in assigned(each)}
    for node in ast.walk(method):
        if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert) and _asks_for_values(node.test, tensors):
            if isinstance(node, ast.Assert):
                continue
            porting.find(
                source,
                node.test,
                NAME,
                Severity.REFUSED,
                f"What forward computes depends on the values of tensors: {ast.unparse(node.test)!r}.",
                _REMEDY,
            )


def _asks_for_values(test: ast.expr, tensors: set[str]) -> bool:
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr in _VALUES
        and bool(reads(each) & tensors)
        for each in ast.walk(test)
    )


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="Conditions on the values of tensors, in a step or in a model's forward, are refused.",
    why="A program is made before there are values; it would always take the same branch.",
    example=Example(
        before=PLAIN_STEP
        + """\
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    if loss > 4.0:
        continue
    loss.backward()
    optimizer.step()
""",
        finds="depends on the values of tensors",
    ),
    apply=apply,
)
