"""Functions of ``torch.cuda``."""

from __future__ import annotations

import ast

from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.hpu.mapping import RENAMED, SAME_NAMES, is_set_device, name_edits
from pilotage.porting.rules.hpu.mode_enum import ModeEnum, is_of_another_mode, mode_enum
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target

__all__ = ["RULE"]

_ELSEWHERE = ("device", "set_device", "amp", "OutOfMemoryError")
"""Names that this rule or another one edits in another way."""


def _apply(porting: Porting) -> None:
    enum = mode_enum(porting.project)
    for source in porting.project.sources:
        for place, edit in name_edits(porting.project, source, source.tree, RULE.name):
            if not is_of_another_mode(enum, source, place):
                porting.edit(source, edit.start, edit.end, edit.text, RULE.name)
        for node in ast.walk(source.tree):
            if isinstance(node, ast.stmt) and is_set_device(porting.project, source, node):
                if not is_of_another_mode(enum, source, node):
                    _remove(porting, source, node)
            elif isinstance(node, ast.Attribute):
                _judge(porting, source, node, enum)


def _remove(porting: Porting, source: Source, statement: ast.stmt) -> None:
    if len(source.block(statement)) == 1:
        porting.replace(source, statement, "pass  # the launcher's variables select the card", RULE.name)
    else:
        porting.remove(source, statement, RULE.name, with_comments=False)


def _judge(porting: Porting, source: Source, node: ast.Attribute, enum: ModeEnum | None) -> None:
    """Report a name without a counterpart on Gaudi."""
    name = porting.project.names[source].dotted(node) or ""
    first = name.removeprefix("torch.cuda.").partition(".")[0]
    if not name.startswith("torch.cuda.") or first in SAME_NAMES or first in RENAMED or first in _ELSEWHERE:
        return
    parent = source.parents.get(node)
    if not isinstance(parent, ast.Attribute) and not is_of_another_mode(enum, source, node):
        porting.find(
            source,
            node,
            RULE.name,
            Severity.BY_HAND,
            f"Gaudi has no counterpart of {name}.",
            "Remove the call, or replace what it is for.",
        )


RULE = Rule(
    name="hpu-names",
    targets=frozenset({Target.HPU}),
    what="Functions of `torch.cuda` that Gaudi has too are called in `torch.hpu`; `torch.cuda.set_device` is removed.",
    why="Importing Habana's bridge adds `torch.hpu`. Which card a process uses follows from the launcher's variables.",
    example=Example(
        before="""\
import torch

if torch.cuda.is_available():
    torch.cuda.set_device(0)
    torch.cuda.manual_seed_all(1)
""",
        after="""\
import torch

if torch.hpu.is_available():
    torch.hpu.manual_seed_all(1)
""",
    ),
    apply=_apply,
)
