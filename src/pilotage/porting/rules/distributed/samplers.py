"""Removes DistributedSampler: the loader divides the data itself."""

from __future__ import annotations

import ast

from pilotage.porting.analysis.code.origins import origins
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.sources.source import Source
from pilotage.porting.writing.dialect import PROGRAMS
from pilotage.porting.writing.signatures import argument_place

__all__ = ["RULE"]

NAME = "samplers"
_SAMPLER = ("torch.utils.data.distributed.DistributedSampler", "torch.utils.data.DistributedSampler")


def apply(porting: Porting) -> None:
    """Let loaders shuffle instead of samplers that divide a data set among processes."""
    if not porting.has_work:
        return
    for loader in porting.plan.loaders:
        keyword = next((each for each in loader.call.keywords if each.arg == "sampler"), None)
        if keyword is not None and _is_distributed(porting, loader.source, keyword.value):
            _shuffle(porting, loader.source, loader.call, _shuffles(porting, loader.source, keyword.value))
    for source in porting.project.sources:
        for node in source.nodes:
            if porting.project.names[source].calls(node) in _SAMPLER:
                porting.replace(source, node, "None", NAME)
            elif _sets_epoch(source, node):
                porting.remove(source, source.statement(node), NAME)


def _is_distributed(porting: Porting, source: Source, node: ast.expr) -> bool:
    found = origins(porting.project, source, node)
    return any(porting.project.names[each.source].calls(each.node) in _SAMPLER for each in found)


def _shuffles(porting: Porting, source: Source, node: ast.expr) -> bool:
    """Whether the sampler shuffles, which is its default."""
    for origin in origins(porting.project, source, node):
        if isinstance(origin.node, ast.Call):
            given = next((each.value for each in origin.node.keywords if each.arg == "shuffle"), None)
            if isinstance(given, ast.Constant):
                return bool(given.value)
    return True


def _shuffle(porting: Porting, source: Source, call: ast.Call, shuffles: bool) -> None:
    keyword = next((each for each in call.keywords if each.arg == "shuffle"), None)
    if keyword is None:
        offset, text = argument_place(source, call, f"shuffle={shuffles}")
        porting.edit(source, offset, offset, text, NAME)
    elif isinstance(keyword.value, ast.Constant) and bool(keyword.value.value) is not shuffles:
        porting.replace(source, keyword.value, str(shuffles), NAME)


def _sets_epoch(source: Source, node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "set_epoch"
        and isinstance(source.parents[node], ast.Expr)
    )


RULE = Rule(
    name=NAME,
    targets=PROGRAMS,
    what="A DistributedSampler becomes None, its loader shuffles instead, and set_epoch is removed.",
    why="poptorch's loader divides a data set among instances by itself, and one process needs all of it.",
    example=Example(
        before="""\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler

model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=16, sampler=sampler)
for epoch in range(3):
    sampler.set_epoch(epoch)
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
from torch.utils.data import DataLoader, DistributedSampler

model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
sampler = None
loader = DataLoader(dataset, batch_size=16, sampler=sampler, shuffle=True)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
""",
    ),
    apply=apply,
)
