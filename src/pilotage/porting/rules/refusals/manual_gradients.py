"""Gradients that the script reads or writes itself."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.code.scopes import Scope
from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.sources.source import Source
from pilotage.porting.writing.dialect import PROGRAMS

__all__ = ["RULE"]

NAME = "manual-gradients"
_REMEDY = "Leave it out; to change gradients, change the loss, or use max_grad_norm to clip them."


def apply(porting: Porting) -> None:
    """Refuse ``.grad``, `torch.autograd.grad` and the like in functions that train."""
    for each in porting.plan.refusals:
        if each.rule == NAME:
            _find(porting, each.source, each.node, f"The script works with gradients itself: {each.detail}.")
    for planned in porting.plan.steps:
        step = planned.step
        removed = {node for each in step.removed for node in ast.walk(each)}
        for node in _nodes(porting, step.source, step.scope):
            if node in removed:
                continue
            name = porting.project.names[step.source].calls(node) or ""
            if name in ("torch.autograd.grad", "torch.autograd.backward"):
                _find(porting, step.source, node, f"{name} computes gradients outside of the program.")
            elif isinstance(node, ast.Attribute) and node.attr == "grad" and not _is_module(porting, step.source, node):
                _find(porting, step.source, node, f"{ast.unparse(node)} exists only inside of the program.")


def _nodes(porting: Porting, source: Source, scope: Scope) -> list[ast.AST]:
    return [
        each for each in ast.walk(scope.node) if each is scope.node or porting.project.scope_of(source, each) is scope
    ]


def _is_module(porting: Porting, source: Source, node: ast.Attribute) -> bool:
    """Whether this is a function of torch, such as ``torch.autograd.grad``."""
    return porting.project.names[source].dotted(node) is not None


def _find(porting: Porting, source: Source, node: ast.AST, message: str) -> None:
    porting.find(source, node, NAME, Severity.REFUSED, message, _REMEDY)


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="Functions that train and read or write gradients themselves are refused.",
    why="Gradients exist only inside of the program; the script would see None.",
    example=Example(
        before=PLAIN_STEP
        + """\
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    model.weight.grad.mul_(0.5)
    optimizer.step()
""",
        finds="model.weight.grad exists only inside of the program",
    ),
    apply=apply,
)
