"""Devices: ``cuda`` becomes ``hpu``."""

from __future__ import annotations

from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.rules.hpu.mapping import device_edits
from pilotage.porting.rules.hpu.mode_enum import is_of_another_mode, mode_enum
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target

__all__ = ["RULE"]


def _apply(porting: Porting) -> None:
    enum = mode_enum(porting.project)
    if not any(_uses_a_framework(porting, source) for source in porting.project.sources):
        return
    for source in porting.project.sources:
        for node, edit in device_edits(porting.project, source, source.tree, RULE.name):
            if not is_of_another_mode(enum, source, node):
                porting.edit(source, edit.start, edit.end, edit.text, RULE.name)


def _uses_a_framework(porting: Porting, source: Source) -> bool:
    """Whether a script imports torch or TensorFlow; a string in other programs is not a device."""
    imported = {each.split(".")[0] for each in porting.project.names[source].imported.values()}
    return bool(imported & {"torch", "tensorflow"})


RULE = Rule(
    name="hpu-device",
    targets=frozenset({Target.HPU}),
    what="Device strings, `torch.device` and `.cuda()` name the device `hpu`.",
    why="Gaudi is the device type `hpu`. Each process sees one card, so an index is removed.",
    example=Example(
        before="""\
import torch

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
model = torch.nn.Linear(2, 2).cuda(non_blocking=True)
""",
        after="""\
import torch

device = torch.device("hpu" if torch.cuda.is_available() else "cpu")
model = torch.nn.Linear(2, 2).to("hpu", non_blocking=True)
""",
    ),
    apply=_apply,
)
