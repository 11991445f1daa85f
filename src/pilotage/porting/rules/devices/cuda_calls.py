"""Removes calls of torch.cuda; checks for CUDA become False."""

from __future__ import annotations

import ast

from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.devices.branches import branches_that_go, is_never_true
from pilotage.porting.rules.plain_example import PLAIN_LOOP
from pilotage.porting.sources.source import Source
from pilotage.porting.writing.dialect import PROGRAMS

__all__ = ["RULE"]

NAME = "cuda-calls"
_ANSWERS = {
    "torch.cuda.is_available": "False",
    "torch.cuda.device_count": "0",
    "torch.cuda.memory_allocated": "0",
    "torch.cuda.memory_reserved": "0",
    "torch.cuda.max_memory_allocated": "0",
    "torch.backends.mps.is_available": "False",
    "torch.accelerator.is_available": "False",
    "torch.accelerator.device_count": "0",
}
_WITHOUT_EFFECT = (
    "torch.cuda.manual_seed",
    "torch.cuda.manual_seed_all",
    "torch.cuda.set_device",
    "torch.cuda.empty_cache",
    "torch.cuda.synchronize",
    "torch.cuda.reset_peak_memory_stats",
    "torch.cuda.reset_max_memory_allocated",
)
_CUDNN = ("torch.backends.cudnn", "torch.backends.cuda")
_ENVIRONMENT = ".".join(("os", "environ"))
_ELSEWHERE = ("torch.cuda.amp",)
"""Other rules convert these."""


def apply(porting: Porting) -> None:
    """Remove calls of torch.cuda, or replace them by their result without CUDA."""
    if not porting.has_work:
        return
    for source in porting.project.sources:
        names = porting.project.names[source]
        gone = branches_that_go(porting, source)
        for node in source.nodes:
            if node in gone:
                continue
            if isinstance(node, ast.Call):
                _call(porting, source, node, names.dotted(node.func) or "")
            elif isinstance(node, ast.Assign) and _is_setting(porting, source, node):
                porting.remove(source, node, NAME)


def _call(porting: Porting, source: Source, call: ast.Call, name: str) -> None:
    statement = source.parents[call]
    if name in _WITHOUT_EFFECT and isinstance(statement, ast.Expr):
        porting.remove(source, statement, NAME)
    elif name == "torch.cuda.device":
        porting.replace(source, call, "contextlib.nullcontext()", NAME)
    elif _ANSWERS.get(name) == "False" and isinstance(statement, ast.IfExp) and statement.test is call:
        # "cuda" if torch.cuda.is_available() else "cpu" is "cpu".
        otherwise = source.text.index("else", source.span(call)[1]) + len("else")
        while source.text[otherwise].isspace():
            otherwise += 1
        porting.edit(source, source.span(statement)[0], otherwise, "", NAME)
    elif isinstance(statement, ast.BoolOp) and is_never_true(porting, source, statement):
        porting.replace(source, statement, "False", NAME)
    elif name in _ANSWERS:
        # What used to be one process for each GPU is one process.
        answer = "1" if name == "torch.cuda.device_count" and _spawns(porting) else _ANSWERS[name]
        porting.replace(source, call, answer, NAME)
    elif name.startswith("torch.cuda.") and not name.startswith(_ELSEWHERE) and name not in _WITHOUT_EFFECT:
        porting.find(
            source,
            call,
            NAME,
            Severity.BY_HAND,
            f"{name} has no counterpart here.",
            "Remove it, or ask the wrapped model for what you need.",
        )


def _spawns(porting: Porting) -> bool:
    """Whether the original starts processes by itself."""
    project = porting.project
    return any(
        project.names[source].calls(node) == "torch.multiprocessing.spawn"
        for source in project.sources
        for node in source.nodes
    )


def _is_setting(porting: Porting, source: Source, node: ast.Assign) -> bool:
    """Whether an assignment sets something that only matters for CUDA."""
    target = node.targets[0]
    name = porting.project.names[source].dotted(target) or ""
    if name.startswith(_CUDNN):
        return True
    return (
        isinstance(target, ast.Subscript)
        and porting.project.names[source].dotted(target.value) == _ENVIRONMENT
        and isinstance(target.slice, ast.Constant)
        and str(target.slice.value).startswith("CUDA_")
    )


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="Calls of torch.cuda without a result are removed, as are settings of cuDNN and CUDA's variables. Checks "
    "for CUDA become False.",
    why="The script's own code runs on the host, whatever device the wrapped model uses.",
    example=Example(
        before="""\
import torch
import torch.nn.functional as F
from torch import nn

torch.backends.cudnn.benchmark = True
torch.cuda.manual_seed(1)
workers = 4 if torch.cuda.is_available() else 0
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
        + PLAIN_LOOP,
        after="""\
import torch
import torch.nn.functional as F
from torch import nn

workers = 0
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
        + PLAIN_LOOP,
    ),
    apply=apply,
)
