"""The weights of a model whose stages are in several processes, brought together."""

from __future__ import annotations

import torch
from torch import Tensor

from pilotage.distributed.pipeline_group import Line
from pilotage.execution.state import DeviceState
from pilotage.passes.cutting import StageProgram
from pilotage.program.layout import StateLayout
from pilotage.strategies.stages.messages import Message


def whole_weights(line: Line, cut: StageProgram, layout: StateLayout, state: DeviceState) -> dict[str, Tensor]:
    """All parameters and buffers, each from the stage that it lives in; all stages have to ask for them together."""
    own = {**state.parameters, **state.buffers()}
    specifications = {name: spec.dense for name, spec in {**layout.parameters, **layout.buffers}.items()}
    found: dict[str, Tensor] = {}
    for stage in range(line.stages):
        names = [name for name, home in cut.homes.items() if home == stage]
        message = Message([specifications[name] for name in names])
        if not message.size:
            continue
        if stage == line.stage:
            carrier = message.pack([own[name] for name in names], torch.device("cpu"))
        else:
            carrier = torch.empty(message.size)
        line.broadcast([carrier], stage)
        found |= dict(zip(names, message.unpack(carrier), strict=True))
    return found
