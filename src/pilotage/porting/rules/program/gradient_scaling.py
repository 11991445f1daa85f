"""GradScaler becomes an option, and autocast moves into the joined module."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.code.flow import path_of
from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target
from pilotage.porting.writing.dialect import PROGRAMS

__all__ = ["RULE"]

NAME = "gradient-scaling"


def apply(porting: Porting) -> None:
    """Remove scalers that nothing uses any more."""
    for planned in porting.plan.steps:
        scalers = {path_of(each.scaler): each.scaler for each in planned.step.calls if each.scaler is not None}
        for path, node in scalers.items():
            if path is None:
                continue
            _remove_maker(porting, planned.step.source, path)
            how = (
                "setAutomaticLossScaling replaces it."
                if porting.target is not Target.PILOTAGE
                else "pilotage.training does not scale: compute in float32 or bfloat16."
            )
            message = f"The program scales the loss by itself, so {path} is removed; {how}"
            porting.find(planned.step.source, node, NAME, Severity.NOTE, message)


def _remove_maker(porting: Porting, source: Source, path: str) -> None:
    removed = {node for statement in porting.removed(source) for node in ast.walk(statement)}
    makers = [
        node
        for node in source.nodes
        if isinstance(node, ast.Assign)
        and path_of(node.targets[0]) == path
        and (porting.project.names[source].calls(node.value) or "").endswith("GradScaler")
    ]
    inside = {each for maker in makers for each in ast.walk(maker)}
    others = [
        node
        for node in source.nodes
        if path_of(node) == path and node not in removed and node not in inside and not _is_store(node)
    ]
    if not others:
        for maker in makers:
            porting.remove(source, maker, NAME)


def _is_store(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="The calls of a GradScaler are removed, and with poptorch its work becomes setAutomaticLossScaling. "
    "autocast stays around the model's call, which is in the joined module now.",
    why="Scaling belongs to the backward pass, which is inside of the program.",
    example=Example(
        before=PLAIN_STEP
        + """\
scaler = torch.amp.GradScaler("cuda")
for x, y in loader:
    optimizer.zero_grad()
    with torch.autocast("cuda"):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
""",
        after=PLAIN_STEP
        + """\
for x, y in loader:
    optimizer.zero_grad()
    with torch.autocast("cuda"):
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
""",
        finds="setAutomaticLossScaling replaces it",
    ),
    apply=apply,
)
