"""One instance saves and logs."""

from __future__ import annotations

import ast
import re

from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.plain_example import PLAIN_STEP
from pilotage.porting.sources.layout import indentation, unit_of_indentation
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target

__all__ = ["RULE"]

NAME = "single-instance"
_ASKS_WHO = re.compile(r"getInstanceIndex|rank|is_main|is_master|primary", re.IGNORECASE)
"""Conditions that already choose one process."""
_LOGGERS = ("info", "warning", "debug", "error", "log")


def apply(porting: Porting) -> None:
    """Make only the first instance save, print and log."""
    if not porting.has_work:
        return
    for source in porting.project.sources:
        removed = porting.removed(source)
        for node in source.nodes:
            if isinstance(node, ast.Expr) and node not in removed and _is_for_one(porting, source, node.value):
                _guard(porting, source, node)


def _is_for_one(porting: Porting, source: Source, call: ast.expr) -> bool:
    if not isinstance(call, ast.Call):
        return False
    name = porting.project.names[source].dotted(call.func) or ""
    if name in ("torch.save", "safetensors.torch.save_file") or name.startswith("logging."):
        return True
    if isinstance(call.func, ast.Name):
        return call.func.id == "print"
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr in _LOGGERS
        and ast.unparse(call.func.value).rpartition(".")[2] in ("logger", "log", "_logger")
    )


def _guard(porting: Porting, source: Source, statement: ast.Expr) -> None:
    start, _ = source.span(statement)
    head = source.text[source.line_start(statement.lineno) : start]
    if head.strip() or ";" in source.line(statement.lineno).partition("#")[0]:
        return
    around = [each for each in source.ancestors(statement) if isinstance(each, ast.If)]
    if any(_ASKS_WHO.search(source.segment(each.test)) for each in around):
        return
    indent, unit = indentation(source, statement), unit_of_indentation(source)
    porting.edit(source, start, start, f"if popdist.getInstanceIndex() == 0:\n{indent}{unit}", NAME)


RULE = Rule(
    name=NAME,
    targets=frozenset({Target.POPDIST}),
    what="Calls of torch.save, print and loggers get a condition: only the first instance makes them.",
    why="All instances have the same weights; several of them writing one file at once would damage it.",
    example=Example(
        before=PLAIN_STEP
        + """\
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), "model.pt")
""",
        after=PLAIN_STEP
        + """\
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
if popdist.getInstanceIndex() == 0:
    torch.save(model.state_dict(), "model.pt")
""",
    ),
    apply=apply,
)
