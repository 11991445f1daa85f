"""The package of the target is imported."""

from __future__ import annotations

import ast
import re

from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.sources.layout import lines_of
from pilotage.porting.sources.source import Source
from pilotage.porting.writing.dialect import PROGRAMS

__all__ = ["RULE"]

NAME = "imports"
_PACKAGES = ("contextlib", "pilotage", "popdist", "popdist.poptorch", "poptorch", "torch")


def apply(porting: Porting) -> None:
    """Import what the other rules wrote; the last rule."""
    for source in porting.project.sources:
        written = "\n".join(edit.text for edit in porting.edits(source))
        imported = set(porting.project.names[source].imported.values())
        lines = [
            f"import {package}\n"
            for package in _PACKAGES
            if re.search(rf"(?<![\w.]){re.escape(package)}\.\w", written) and package not in imported
        ]
        if lines:
            offset, before, after = _place(source)
            porting.edit(source, offset, offset, f"{before}{''.join(lines)}{after}", NAME, first=True)


def _place(source: Source) -> tuple[int, str, str]:
    """After the imports at the top; the statement after them shows where they end."""
    last: ast.stmt | None = None
    for statement in source.tree.body:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if isinstance(statement, ast.Import | ast.ImportFrom):
            last = statement
        elif last is not None and not is_text:
            break
    if last is None:
        first = source.tree.body[0] if source.tree.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            return lines_of(source, first)[1], "\n", ""
        return 0, "", "\n"
    return lines_of(source, last)[1], "", ""


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="The package of the target is imported after the other imports.",
    why="The new code uses it.",
    example=Example(
        before="""\
import torch
import torch.nn.functional as F
from torch import nn

model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
""",
        after="""\
import torch
import torch.nn.functional as F
from torch import nn
import poptorch

model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
""",
    ),
    apply=apply,
)
