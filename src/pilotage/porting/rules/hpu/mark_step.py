"""Where lazy mode ends its graphs."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.training_calls import CallKind, training_call
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.hpu.mode_enum import mode_enum
from pilotage.porting.sources.layout import indentation, unit_of_indentation
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target

__all__ = ["RULE"]

_MARKED = (CallKind.BACKWARD, CallKind.STEP, CallKind.SCALER_STEP)


def _apply(porting: Porting) -> None:
    is_optional = mode_enum(porting.project) is not None
    for source in porting.project.sources:
        for node in ast.walk(source.tree):
            found = training_call(porting.project, source, node)
            if found is not None and found.kind in _MARKED and not _is_marked(source, source.statement(node)):
                _mark(porting, source, source.statement(node), is_optional=is_optional)


def _mark(porting: Porting, source: Source, statement: ast.stmt, *, is_optional: bool) -> None:
    call = f"{_bridge(porting, source)}.mark_step()"
    assert statement.end_lineno is not None
    if not isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign):
        return
    indent = indentation(source, statement)
    text = f"{indent}{call}\n"
    if is_optional:
        text = f"{indent}if htcore is not None:\n{indent}{unit_of_indentation(source)}{call}\n"
    after = source.line_start(statement.end_lineno + 1)
    if not source.text[:after].endswith("\n"):
        text = "\n" + text.removesuffix("\n")
    porting.edit(source, after, after, text, RULE.name)


def _bridge(porting: Porting, source: Source) -> str:
    """The name under which a script knows Habana's core module."""
    return porting.project.names[source].local("habana_frameworks.torch.core") or "htcore"


def _is_marked(source: Source, statement: ast.stmt) -> bool:
    """Whether the next statement marks the step already."""
    block = source.block(statement)
    place = next(index for index, each in enumerate(block) if each is statement)
    return place + 1 < len(block) and "mark_step(" in source.segment(block[place + 1])


RULE = Rule(
    name="hpu-mark-step",
    targets=frozenset({Target.HPU}),
    what="`htcore.mark_step()` follows `loss.backward()` and `optimizer.step()`.",
    why="Lazy mode collects operations until a mark ends the graph, then compiles and runs it. In eager mode the call "
    "does nothing, so the script runs in both.",
    example=Example(
        before="""\
import torch

for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
""",
        after="""\
import torch

for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    htcore.mark_step()
    optimizer.step()
    htcore.mark_step()
""",
    ),
    apply=_apply,
)
