"""The network cut into stages, one for each IPU of a replica."""

from __future__ import annotations

from torch import nn

import poptorch
from cosmictagger.networks.levels import Core
from cosmictagger.networks.uresnet import UResNet


def parts_of(network: UResNet) -> list[nn.Module]:
    """The parts that a stage may begin with, in the order in which forward comes to them."""
    way_down: list[nn.Module] = [network.initial_convolution]
    way_up: list[nn.Module] = []
    level: nn.Module = network.net_core
    while isinstance(level, Core) and level.down_blocks is not None:
        way_down += [level.down_blocks, level.downsample]
        way_up = [level.upsample, level.up_blocks, *way_up]
        level = level.main_module
    return [*way_down, level, *way_up]


def begin_stages(network: UResNet, stages: int) -> list[str]:
    """Mark where each stage begins, with equally many parts in each; returns their names."""
    if stages == 1:
        return []
    parts = parts_of(network)
    names = [f"stage{number}" for number in range(stages)]
    for number, name in enumerate(names):
        poptorch.BeginBlock(parts[number * len(parts) // stages], user_id=name, ipu_id=number)
    return names


def strategy_for(names: list[str], accumulation: int) -> poptorch.PipelinedExecution:
    """Stages that work at the same time where there are batches enough to fill them, and one after the other elsewhere."""
    if accumulation >= 2 * len(names) - 1:
        return poptorch.PipelinedExecution(*names)
    return poptorch.ShardedExecution(*names)
