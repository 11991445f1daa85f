"""The package of the target is imported."""

from __future__ import annotations

import re

from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.plain_example import PLAIN_LOOP, PLAIN_STEP
from pilotage.porting.writing.dialect import PROGRAMS
from pilotage.porting.writing.import_places import import_place

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
            offset, before, after = import_place(source)
            porting.edit(source, offset, offset, f"{before}{''.join(lines)}{after}", NAME, first=True)


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="The package of the target is imported after the other imports.",
    why="The new code uses it.",
    example=Example(
        before=PLAIN_STEP + PLAIN_LOOP,
        after="""\
import torch
import torch.nn.functional as F
from torch import nn
import poptorch

model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
        + PLAIN_LOOP,
    ),
    apply=apply,
)
