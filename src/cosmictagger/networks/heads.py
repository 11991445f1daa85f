"""Optional heads of the network: the class of the event and the neutrino's vertex."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from cosmictagger.configuration.choices import GrowthRate
from cosmictagger.configuration.network import Network
from cosmictagger.networks.blocks import PLANES, Block, Style
from cosmictagger.networks.convolutions import convolve
from cosmictagger.networks.levels import joined
from cosmictagger.networks.series import BlockSeries

WIDTH = 128
"""Channels of a head."""

BLOCKS = 4
EVENT_CLASSES = 4
"""Electron neutrino, muon neutrino, neutral current, cosmic rays only."""

VERTEX_VALUES = 3
"""Presence of the vertex, and its row and column offset within the cell."""

VERTEX_LEVEL = 2
"""The level of the vertex head, in halvings above the deepest."""


def channels_at(network: Network, level: int) -> int:
    """Channels of a level, in halvings above the deepest."""
    depth = network.depth - level
    filters = network.n_initial_filters
    return filters * (1 + depth) if network.growth_rate is GrowthRate.additive else filters * 2**depth


def widened(scores: Tensor) -> Tensor:
    """Scores in float32 at least, for the losses."""
    return scores.to(torch.promote_types(scores.dtype, torch.float32))


class Head(nn.Module):
    """A 1x1 block, four blocks, and a 1x1 convolution to the outputs."""

    def __init__(self, network: Network, style: Style, inputs: int, outputs: int, groups: int) -> None:
        super().__init__()
        self.bottleneck = Block(style, inputs, WIDTH, size=1, padding=0, groups=groups)
        self.blocks = BlockSeries(style, WIDTH, BLOCKS, residual=network.residual, groups=groups)
        self.last = style.convolution(WIDTH, outputs, 1)

    def forward(self, features: Tensor) -> Tensor:
        """The outputs for each pixel of the features."""
        return convolve(self.last, self.blocks(self.bottleneck(features)), self.last.bias)


class EventClassifier(Head):
    """Scores of the event's class, from the deepest features of all planes."""

    def __init__(self, network: Network, style: Style) -> None:
        super().__init__(network, style, PLANES * channels_at(network, 0), EVENT_CLASSES, groups=1)

    def forward(self, features: Tensor) -> Tensor:
        """Scores (N, 4); the head's gradient does not reach the rest of the network."""
        return widened(super().forward(joined(features.detach()))).mean((2, 3))


class VertexFinder(Head):
    """Presence and offset of the vertex for each cell of a coarse grid on each plane."""

    def __init__(self, network: Network, style: Style) -> None:
        super().__init__(network, style, channels_at(network, VERTEX_LEVEL), VERTEX_VALUES, groups=style.groups)

    def forward(self, features: Tensor) -> Tensor:
        """Logits (3 N, 3, h, w)."""
        return widened(super().forward(features))
