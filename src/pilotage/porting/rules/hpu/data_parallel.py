"""One process that drives several cards."""

from __future__ import annotations

import ast

from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target

__all__ = ["RULE"]


def _apply(porting: Porting) -> None:
    for source in porting.project.sources:
        wrapped: set[str] = set()
        for node in ast.walk(source.tree):
            is_wrapper = porting.project.names[source].calls(node) == "torch.nn.DataParallel"
            if isinstance(node, ast.Call) and is_wrapper and node.args:
                _unwrap(porting, source, node)
                wrapped |= _assigned(source, node)
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Attribute) and node.attr == "module" and source.segment(node.value) in wrapped:
                start, end = source.span(node.value)[1], source.span(node)[1]
                porting.edit(source, start, end, "", RULE.name)


def _unwrap(porting: Porting, source: Source, call: ast.Call) -> None:
    (start, end), (inner_start, inner_end) = source.span(call), source.span(call.args[0])
    statement = source.parents[call]
    if isinstance(statement, ast.Assign) and source.segment(call.args[0]) in _assigned(source, call):
        porting.remove(source, statement, RULE.name)
    else:
        porting.edit(source, start, inner_start, "", RULE.name)
        porting.edit(source, inner_end, end, "", RULE.name)
    porting.find(
        source,
        call,
        RULE.name,
        Severity.WARNING,
        "DataParallel has no counterpart on Gaudi, so one card trains the whole batch. It moved inputs to its card: "
        "check that each batch is moved, in evaluation too.",
        "For several cards, start one process for each with torchrun and use DistributedDataParallel.",
    )


def _assigned(source: Source, call: ast.Call) -> set[str]:
    statement = source.statement(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {source.segment(each) for each in targets}


RULE = Rule(
    name="hpu-data-parallel",
    targets=frozenset({Target.HPU}),
    what="`nn.DataParallel` is removed, and so is `.module` of the variable that holds it.",
    why="A process on Gaudi drives one card. The whole batch goes through it, so that training stays the same.",
    example=Example(
        before="""\
import torch

model = torch.nn.DataParallel(model, device_ids=[0, 1])
torch.save(model.module.state_dict(), "model.pt")
""",
        after="""\
import torch

torch.save(model.state_dict(), "model.pt")
""",
        finds="no counterpart on Gaudi",
    ),
    apply=_apply,
)
