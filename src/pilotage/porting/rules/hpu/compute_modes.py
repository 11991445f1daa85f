"""Programs that choose their device by an enumeration get one more member, and a branch beside each of CUDA's."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.project import Project
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.hpu.mapping import backend_edits, device_edits, is_set_device, name_edits
from pilotage.porting.rules.hpu.mode_enum import HPU, ModeEnum, compared_mode, mode_enum
from pilotage.porting.sources.edits import Edit, apply_edits
from pilotage.porting.sources.layout import indentation
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target

__all__ = ["RULE"]


def _apply(porting: Porting) -> None:
    enum = mode_enum(porting.project)
    if enum is None:
        return
    if not enum.has_hpu:
        _add_member(porting, enum)
    for source in porting.project.sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.If):
                found = compared_mode(enum, node.test)
                if found is not None and found[1] == enum.card:
                    _add_branch(porting, source, node, enum)


def _add_member(porting: Porting, enum: ModeEnum) -> None:
    """One more member after the last, laid out as that one is."""
    name, last = enum.members[-1]
    numbers = [each.value.value for _, each in enum.members if isinstance(each.value, ast.Constant)]
    value = 1 + max((each for each in numbers if isinstance(each, int)), default=0)
    text = enum.source.segment(last)
    gap = text[len(name) : len(text) - len(enum.source.segment(last.value))]
    text = HPU.ljust(len(name)) + gap.removeprefix(" " * max(0, len(HPU) - len(name)))
    written = str(value) if numbers and isinstance(numbers[-1], int) else f'"{HPU.lower()}"'
    assert last.end_lineno is not None
    after = enum.source.line_start(last.end_lineno + 1)
    porting.edit(enum.source, after, after, f"{indentation(enum.source, last)}{text}{written}\n", RULE.name)
    porting.find(
        enum.source,
        enum.node,
        RULE.name,
        Severity.NOTE,
        f"{enum.name}.{HPU} selects Gaudi; the other modes stay as they are. PT_HPU_LAZY_MODE=1 in the environment "
        "chooses lazy mode, which must be known before Habana's bridge is imported.",
    )


def _add_branch(porting: Porting, source: Source, chain: ast.If, enum: ModeEnum) -> None:
    """After CUDA's branch, the same for Gaudi."""
    if any(f"{enum.name}.{HPU}" in source.segment(each) for each in _tests(chain)):
        return
    body = [each for each in chain.body if not is_set_device(porting.project, source, each)]
    if not body or (chain.orelse and _is_context(porting.project, source, body)):
        return
    asked = compared_mode(enum, chain.test)
    assert asked is not None
    assert chain.body[-1].end_lineno is not None
    head = source.text[source.line_start(chain.lineno) : source.offset(chain.lineno, chain.col_offset)]
    operator = "is" if isinstance(chain.test, ast.Compare) and isinstance(chain.test.ops[0], ast.Is) else "=="
    test = f"{head}elif {source.segment(asked[0])} {operator} {enum.name}.{HPU}:"
    if chain.body[0].lineno == chain.test.end_lineno:
        text = f"{test} {'; '.join(_mapped(porting.project, source, each) for each in body)}\n"
    else:
        lines = (f"{indentation(source, each)}{_mapped(porting.project, source, each)}\n" for each in body)
        text = f"{test}\n{''.join(lines)}"
    after = source.line_start(chain.body[-1].end_lineno + 1)
    porting.edit(source, after, after, text, RULE.name)


def _mapped(project: Project, source: Source, statement: ast.stmt) -> str:
    """A statement with CUDA's names replaced by Gaudi's."""
    start, end = source.span(statement)
    planned = [
        *device_edits(project, source, statement, RULE.name),
        *name_edits(project, source, statement, RULE.name),
        *backend_edits(source, statement, RULE.name),
    ]
    moved = [Edit(start=e.start - start, end=e.end - start, text=e.text, rule=e.rule) for _, e in planned]
    return apply_edits(source.text[start:end], moved)


def _is_context(project: Project, source: Source, body: list[ast.stmt]) -> bool:
    """Whether a branch only makes the context of one CUDA device; the last branch serves Gaudi, which has none."""
    return any(project.names[source].calls(node) == "torch.cuda.device" for each in body for node in ast.walk(each))


def _tests(chain: ast.If) -> Iterator[ast.expr]:
    yield chain.test
    for each in chain.orelse:
        if isinstance(each, ast.If):
            yield from _tests(each)


RULE = Rule(
    name="hpu-compute-mode",
    targets=frozenset({Target.HPU}),
    what="An enumeration of devices gets the member `HPU`, and each branch for CUDA gets one for Gaudi next to it.",
    why="Such a program is started with its mode as an argument, so all its other modes must stay as they are.",
    example=Example(
        before="""\
from enum import Enum

import torch


class ComputeMode(Enum):
    CPU = 0
    GPU = 1


def device(mode):
    if mode == ComputeMode.GPU:
        return torch.device("cuda:0")
    return torch.device("cpu")
""",
        after="""\
from enum import Enum

import torch


class ComputeMode(Enum):
    CPU = 0
    GPU = 1
    HPU = 2


def device(mode):
    if mode == ComputeMode.GPU:
        return torch.device("cuda:0")
    elif mode == ComputeMode.HPU:
        return torch.device("hpu")
    return torch.device("cpu")
""",
        finds="selects Gaudi",
    ),
    apply=_apply,
)
