"""``torch.compile``: Gaudi has a backend of its own."""

from __future__ import annotations

import ast

from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target

__all__ = ["RULE"]

_BACKEND = '"hpu_backend"'


def _apply(porting: Porting) -> None:
    for source in porting.project.sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and porting.project.names[source].calls(node) == "torch.compile":
                _choose(porting, source, node)


def _choose(porting: Porting, source: Source, call: ast.Call) -> None:
    given = next((each for each in call.keywords if each.arg == "backend"), None)
    if given is not None:
        if isinstance(given.value, ast.Constant) and given.value.value != "hpu_backend":
            porting.replace(source, given.value, _BACKEND, RULE.name)
        return
    if any(each.arg is None for each in call.keywords):
        return
    modes = [each for each in call.keywords if each.arg == "mode"]
    if modes:
        porting.replace(source, modes[0], f"backend={_BACKEND}", RULE.name)
        return
    _, end = source.span(call)
    has_arguments = bool(call.args or call.keywords)
    porting.edit(source, end - 1, end - 1, f"{', ' if has_arguments else ''}backend={_BACKEND}", RULE.name)


RULE = Rule(
    name="hpu-compile",
    targets=frozenset({Target.HPU}),
    what="`torch.compile` gets the backend `hpu_backend`; its `mode`, which belongs to another backend, is removed.",
    why="The default backend, inductor, does not generate code for Gaudi.",
    example=Example(
        before="""\
import torch

model = torch.compile(model, mode="reduce-overhead")
""",
        after="""\
import torch

model = torch.compile(model, backend="hpu_backend")
""",
    ),
    apply=_apply,
)
