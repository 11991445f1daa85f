"""Process groups: hccl, and the variables of the launcher."""

from __future__ import annotations

import ast

from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, GuideEdit, Rule
from pilotage.porting.rules.hpu.mapping import backend_edits
from pilotage.porting.rules.hpu.mode_enum import ModeEnum, compared_mode, is_of_another_mode, mode_enum
from pilotage.porting.sources.layout import indentation, unit_of_indentation
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target

__all__ = ["RULE"]

_FUNCTION = "initialize_distributed_hpu"
_IMPORT = f"from habana_frameworks.torch.distributed.hccl import {_FUNCTION}"
_DDP = "torch.nn.parallel.DistributedDataParallel"


def _apply(porting: Porting) -> None:
    enum = mode_enum(porting.project)
    for source in porting.project.sources:
        if enum is None:
            for _, edit in backend_edits(source, source.tree, RULE.name):
                porting.edit(source, edit.start, edit.end, edit.text, RULE.name)
        for node in ast.walk(source.tree):
            name = porting.project.names[source].calls(node)
            if not isinstance(node, ast.Call):
                continue
            if name in ("torch.distributed.init_process_group",) and not is_of_another_mode(enum, source, node):
                _prepare(porting, source, source.statement(node), enum)
            elif name == _DDP:
                _without_devices(porting, source, node)


def _prepare(porting: Porting, source: Source, statement: ast.stmt, enum: ModeEnum | None) -> None:
    """Read the launcher's variables right before the group is made."""
    if _FUNCTION in source.text:
        return
    indent = indentation(source, statement)
    lines = [_IMPORT, f"{_FUNCTION}()  # sets ID from the launcher's variables, torchrun's or mpirun's"]
    mode = _asked_mode(enum, source)
    if enum is not None:
        if mode is None:
            return
        lines = [f"if {mode} == {enum.name}.HPU:", *(unit_of_indentation(source) + each for each in lines)]
    start = source.line_start(statement.lineno)
    porting.edit(source, start, start, "".join(f"{indent}{line}\n" for line in lines), RULE.name)


def _asked_mode(enum: ModeEnum | None, source: Source) -> str | None:
    """How a script asks for the mode of the program, as text."""
    for node in ast.walk(source.tree):
        found = compared_mode(enum, node.test) if enum is not None and isinstance(node, ast.If) else None
        if found is not None:
            return source.segment(found[0])
    return None


def _without_devices(porting: Porting, source: Source, call: ast.Call) -> None:
    """Gaudi's processes have one card each, so that DistributedDataParallel takes no list of devices."""
    for place, keyword in enumerate(call.keywords):
        if keyword.arg in ("device_ids", "output_device"):
            before = call.keywords[place - 1] if place else (call.args[-1] if call.args else None)
            if before is not None:
                porting.edit(source, source.span(before)[1], source.span(keyword)[1], "", RULE.name)


RULE = Rule(
    name="hpu-distributed",
    targets=frozenset({Target.HPU}),
    what="The backend `nccl` becomes `hccl`, which is imported and prepared before the process group is made; "
    "`DistributedDataParallel` takes no devices.",
    why="hccl is registered by its import. It finds the card of a process by the variable `ID`, which "
    "`initialize_distributed_hpu` sets for torchrun and for mpirun, however many cards a host has.",
    example=Example(
        before="""\
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
model = DistributedDataParallel(model, device_ids=[0])
""",
        after=f"""\
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

{_IMPORT}
{_FUNCTION}()  # sets ID from the launcher's variables, torchrun's or mpirun's
dist.init_process_group("hccl")
model = DistributedDataParallel(model)
""",
    ),
    apply=_apply,
    not_followed=(
        GuideEdit(
            guide="CosmicTagger on Habana",
            edit="assumes eight processes on each host (`rank % 8`)",
            instead="takes the launcher's local rank",
        ),
    ),
)
