"""Removes variables that hold a device, or sets them to the host."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.code.flow import path_of
from pilotage.porting.analysis.devices import is_device, moves
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.plain_example import PLAIN_LOOP
from pilotage.porting.sources.source import Source
from pilotage.porting.writing.dialect import PROGRAMS

__all__ = ["RULE"]

NAME = "device-choice"


def apply(porting: Porting) -> None:
    """Remove unused devices, and replace the others by the host."""
    if not porting.has_work:
        return
    for source in porting.project.sources:
        moved = {each for call, _ in moves(porting.project, source, source.tree) for each in ast.walk(call)}
        for node in source.nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and _chooses(porting, source, node.value):
                path = path_of(node.targets[0])
                if path is not None:
                    _convert(porting, source, node, path, moved)
        for node in source.nodes:
            if isinstance(node, ast.If):
                _join_branches(porting, source, node)


def _chooses(porting: Porting, source: Source, value: ast.expr) -> bool:
    """Whether an expression chooses a device."""
    names = porting.project.names[source]
    if isinstance(value, ast.IfExp):
        return _chooses(porting, source, value.body) and _chooses(porting, source, value.orelse)
    if isinstance(value, ast.Call):
        dotted = names.calls(value) or ""
        return dotted in ("torch.device", "torch.cuda.current_device", "torch.accelerator.current_accelerator")
    return isinstance(value, ast.Constant | ast.JoinedStr) and is_device(porting.project, source, value)


def _convert(porting: Porting, source: Source, statement: ast.Assign, path: str, moved: set[ast.AST]) -> None:
    scope = porting.project.scope_of(source, statement)
    owner = scope.resolve(path)
    kept = {each for planned in porting.plan.steps for each in (*planned.step.region, planned.step.loss)}
    moved_on = {each for node in kept for each in ast.walk(node)}  # Into the joined module.
    removed = {each for each_statement in porting.removed(source) for each in ast.walk(each_statement)} - moved_on
    is_used = any(
        path_of(node) == path
        and isinstance(getattr(node, "ctx", None), ast.Load)
        and node not in moved
        and node not in removed
        and not _defines(source, node, path)
        and porting.project.scope_of(source, node).resolve(path) is owner
        for node in source.nodes
    )
    if not is_used:
        porting.remove(source, statement, NAME)
    elif ast.unparse(statement.value) not in ("torch.device('cpu')", "'cpu'"):
        porting.replace(source, statement.value, _processor(porting, source, statement.value), NAME)


def _join_branches(porting: Porting, source: Source, node: ast.If) -> None:
    """Collapse a choice between devices, all of whose branches became the processor."""
    branches = [node.body]
    last: list[ast.stmt] = node.orelse
    while len(last) == 1 and isinstance(last[0], ast.If):
        branches.append(last[0].body)
        last = last[0].orelse
    paths = set()
    for block in (*branches, last):
        is_single = len(block) == 1 and block[0] not in porting.removed(source)
        if not is_single or not isinstance(block[0], ast.Assign) or not _chooses(porting, source, block[0].value):
            return
        paths.add(ast.unparse(block[0].targets[0]))
    if len(paths) == 1:
        statement = branches[0][0]
        assert isinstance(statement, ast.Assign)
        porting.replace(source, node, f"{paths.pop()} = {_processor(porting, source, statement.value)}", NAME)


def _processor(porting: Porting, source: Source, value: ast.expr) -> str:
    is_text = not isinstance(value, ast.Call) and "torch.device" not in source.segment(value)
    device = porting.project.names[source].local("torch.device") or "torch.device"
    return '"cpu"' if is_text else f'{device}("cpu")'


def _defines(source: Source, node: ast.AST, path: str) -> bool:
    """Whether a use is inside of a definition of the same variable."""
    statement = source.statement(node)
    return isinstance(statement, ast.Assign) and any(path_of(each) == path for each in statement.targets)


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="A variable that holds a device is removed if it is no longer used; otherwise it becomes the CPU.",
    why="The script's own tensors stay on the host, so whatever else asks for the device must get the host.",
    example=Example(
        before="""\
import torch
import torch.nn.functional as F
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
offset = torch.zeros(1, device=device)
"""
        + PLAIN_LOOP,
        after="""\
import torch
import torch.nn.functional as F
from torch import nn

device = torch.device("cpu")
model = nn.Linear(8, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
offset = torch.zeros(1, device=device)
"""
        + PLAIN_LOOP,
    ),
    apply=apply,
)
