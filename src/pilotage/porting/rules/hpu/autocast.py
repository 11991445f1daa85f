"""Mixed precision: bfloat16, without a gradient scaler."""

from __future__ import annotations

import ast

from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.hpu.mapping import name_edits
from pilotage.porting.sources.edits import Edit, apply_edits
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target

__all__ = ["RULE"]

_OLD = "torch.cuda.amp.autocast"
_SCALERS = ("torch.cuda.amp.GradScaler", "torch.amp.GradScaler", "torch.GradScaler")


def _apply(porting: Porting) -> None:
    for source in porting.project.sources:
        for node in ast.walk(source.tree):
            name = porting.project.names[source].calls(node)
            if not isinstance(node, ast.Call) or name is None:
                continue
            if name == _OLD:
                _rewrite(porting, source, node, "torch.autocast", node.keywords)
            elif name == "torch.autocast":
                _new_autocast(porting, source, node)
            elif name in _SCALERS and not _is_disabled(node):
                porting.replace(source, node, 'torch.amp.GradScaler("hpu", enabled=False)', RULE.name)
        _imports(porting, source)


def _new_autocast(porting: Porting, source: Source, call: ast.Call) -> None:
    """``torch.autocast`` takes its device as the first argument or as ``device_type``."""
    named = next((each for each in call.keywords if each.arg == "device_type"), None)
    device = call.args[0] if call.args else named.value if named is not None else None
    is_fixed = isinstance(device, ast.Constant) and device.value in ("cuda", "hpu")
    if not is_fixed and not (isinstance(device, ast.Attribute) and device.attr == "type"):
        return
    if isinstance(device, ast.Constant) and device.value == "hpu" and _has_bfloat16(source, call):
        return
    first = '"hpu"' if isinstance(device, ast.Constant) else source.segment(device) if device is not None else ""
    if not isinstance(device, ast.Constant) and _has_bfloat16(source, call):
        return
    _rewrite(porting, source, call, source.segment(call.func), call.keywords, device=first)


def _rewrite(
    porting: Porting, source: Source, call: ast.Call, name: str, given: list[ast.keyword], device: str = '"hpu"'
) -> None:
    kept = [_renamed(porting, source, each) for each in given if each.arg not in ("device_type", "dtype")]
    arguments = ", ".join([device, "dtype=torch.bfloat16", *kept])
    porting.replace(source, call, f"{name}({arguments})", RULE.name)
    if not _has_bfloat16(source, call):
        porting.find(
            source,
            call,
            RULE.name,
            Severity.NOTE,
            "Mixed precision uses bfloat16 instead of float16; it needs no scaled gradients, so scalers are disabled.",
        )


def _renamed(porting: Porting, source: Source, keyword: ast.keyword) -> str:
    """An argument that stays, with the card's names: ``enabled=torch.cuda.is_available()`` asks for Gaudi."""
    start, _ = source.span(keyword)
    edits = [edit for _, edit in name_edits(porting.project, source, keyword, RULE.name)]
    moved = [Edit(start=each.start - start, end=each.end - start, text=each.text, rule=each.rule) for each in edits]
    return apply_edits(source.segment(keyword), moved)


def _has_bfloat16(source: Source, call: ast.Call) -> bool:
    return any(each.arg == "dtype" and "bfloat16" in source.segment(each.value) for each in call.keywords)


def _is_disabled(call: ast.Call) -> bool:
    return any(
        each.arg == "enabled" and isinstance(each.value, ast.Constant) and each.value.value is False
        for each in call.keywords
    )


def _imports(porting: Porting, source: Source) -> None:
    """Remove ``from torch.cuda.amp import …`` of names that are no longer used."""
    for statement in source.tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "torch.cuda.amp":
            kept = [each for each in statement.names if each.name not in ("autocast", "GradScaler")]
            if kept:
                names = ", ".join(source.segment(each) for each in kept)
                porting.replace(source, statement, f"from torch.cuda.amp import {names}", RULE.name)
            else:
                porting.remove(source, statement, RULE.name, with_comments=False)


RULE = Rule(
    name="hpu-autocast",
    targets=frozenset({Target.HPU}),
    what="Autocast names the device `hpu` and computes in bfloat16; gradient scalers are disabled.",
    why="Gaudi's mixed precision is bfloat16, whose range is that of float32, so gradients need no scaling. A disabled "
    "scaler passes losses and steps through, and the code around it stays as it is.",
    example=Example(
        before="""\
import torch
from torch.cuda.amp import GradScaler, autocast

scaler = GradScaler()
with autocast():
    output = model(images)
""",
        after="""\
import torch

scaler = torch.amp.GradScaler("hpu", enabled=False)
with torch.autocast("hpu", dtype=torch.bfloat16):
    output = model(images)
""",
        finds="bfloat16 instead of float16",
    ),
    apply=_apply,
)
