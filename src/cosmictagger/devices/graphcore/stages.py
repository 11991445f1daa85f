"""The network split into pipeline stages, one for each IPU of a replica."""

from __future__ import annotations

from torch import nn

import poptorch
from cosmictagger.networks.levels import Core
from cosmictagger.networks.uresnet import UResNet


def parts_of(network: UResNet) -> list[nn.Module]:
    """The modules that a stage can begin with, in the order of forward."""
    down: list[nn.Module] = [network.initial_convolution]
    up: list[nn.Module] = []
    level: nn.Module = network.net_core
    while isinstance(level, Core) and level.down_blocks is not None:
        down += [level.down_blocks, level.downsample]
        up = [level.upsample, level.up_blocks, *up]
        level = level.main_module
    return [*down, level, *up]


def begin_stages(network: UResNet, stages: int) -> list[str]:
    """Mark where each stage begins, dividing the modules equally; returns the stages' names."""
    if stages == 1:
        return []
    parts = parts_of(network)
    names = [f"stage{number}" for number in range(stages)]
    for number, name in enumerate(names):
        poptorch.BeginBlock(parts[number * len(parts) // stages], user_id=name, ipu_id=number)
    return names


def strategy_for(names: list[str], accumulation: int) -> poptorch.PipelinedExecution:
    """Pipelined stages if there are enough batches to fill the pipeline, else sharded ones."""
    if accumulation >= 2 * len(names) - 1:
        return poptorch.PipelinedExecution(*names)
    return poptorch.ShardedExecution(*names)
