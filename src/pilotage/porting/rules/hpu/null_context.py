"""A context manager that was returned without being made."""

from __future__ import annotations

import ast

from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.target import Target

__all__ = ["RULE"]


def _apply(porting: Porting) -> None:
    for source in porting.project.sources:
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.Return) or node.value is None:
                continue
            if porting.project.names[source].dotted(node.value) == "contextlib.nullcontext":
                _, end = source.span(node.value)
                porting.edit(source, end, end, "()", RULE.name)
                porting.find(
                    source,
                    node.value,
                    RULE.name,
                    Severity.NOTE,
                    "This returned the class nullcontext, which `with` refuses; devices without their own context "
                    "come here.",
                )


RULE = Rule(
    name="hpu-null-context",
    targets=frozenset({Target.HPU}),
    what="`return contextlib.nullcontext` becomes a call.",
    why="Gaudi has no context like `torch.cuda.device`, so its mode takes the branch of the processor, which fails "
    "in `with` if it returns the class instead of an object.",
    example=Example(
        before="""\
import contextlib


def device_context():
    return contextlib.nullcontext
""",
        after="""\
import contextlib


def device_context():
    return contextlib.nullcontext()
""",
        finds="returned the class nullcontext",
    ),
    apply=_apply,
)
