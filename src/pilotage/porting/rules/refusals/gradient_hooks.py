"""Hooks on gradients."""

from __future__ import annotations

import ast

from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.writing.dialect import PROGRAMS

__all__ = ["RULE"]

NAME = "gradient-hooks"
_HOOKS = (
    "register_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_backward_hook",
    "register_post_accumulate_grad_hook",
)


def apply(porting: Porting) -> None:
    """Refuse hooks in scripts that train."""
    trains = {each.step.source for each in porting.plan.steps} | {each.source for each in porting.plan.refusals}
    for source in porting.project.sources if trains else ():
        for node in source.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _HOOKS:
                porting.find(
                    source,
                    node,
                    NAME,
                    Severity.REFUSED,
                    f"{node.func.attr} calls Python in the backward pass, but a program runs no Python.",
                    "Leave the hook out; to change gradients, change the loss, or use max_grad_norm to clip them.",
                )


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="Hooks that are called with gradients are refused.",
    why="A program runs without Python, so the hook would never run.",
    example=Example(
        before=PLAIN_STEP
        + """\
model.weight.register_hook(lambda gradient: gradient * 0.5)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
""",
        finds="register_hook calls Python in the backward pass",
    ),
    apply=apply,
)
