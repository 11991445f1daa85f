"""What a network may say beside the class of each pixel: the kind of the event, and where its neutrino interacted."""

from __future__ import annotations

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
"""Electron neutrino, muon neutrino, neutral current, cosmic rays alone."""

VERTEX_VALUES = 3
"""Presence, and where in its cell the vertex lies: down and across."""

VERTEX_LEVEL = 2
"""How many halvings above the deepest level the vertex is looked for."""


def channels_at(network: Network, level: int) -> int:
    """Channels of the level that is so many halvings above the deepest."""
    depth = network.depth - level
    filters = network.n_initial_filters
    return filters * (1 + depth) if network.growth_rate is GrowthRate.additive else filters * 2**depth


class Head(nn.Module):
    """A 1x1 block to many channels, four blocks, and a 1x1 convolution to what is asked for."""

    def __init__(self, network: Network, style: Style, inputs: int, outputs: int, groups: int) -> None:
        super().__init__()
        self.bottleneck = Block(style, inputs, WIDTH, size=1, padding=0, groups=groups)
        self.blocks = BlockSeries(style, WIDTH, BLOCKS, residual=network.residual, groups=groups)
        self.last = style.convolution(WIDTH, outputs, 1)

    def forward(self, features: Tensor) -> Tensor:
        """So many values for each pixel of the features."""
        return convolve(self.last, self.blocks(self.bottleneck(features)), self.last.bias)


class EventClassifier(Head):
    """Scores of the event's kind, from the deepest features of the three planes together."""

    def __init__(self, network: Network, style: Style) -> None:
        super().__init__(network, style, PLANES * channels_at(network, 0), EVENT_CLASSES, groups=1)

    def forward(self, features: Tensor) -> Tensor:
        """Scores (N, 4); what the head learns does not reach the rest of the network."""
        return super().forward(joined(features.detach())).float().mean((2, 3))


class VertexFinder(Head):
    """For each cell of a coarse grid on each plane: whether the vertex is there, and where in it."""

    def __init__(self, network: Network, style: Style) -> None:
        super().__init__(network, style, channels_at(network, VERTEX_LEVEL), VERTEX_VALUES, groups=style.groups)

    def forward(self, features: Tensor) -> Tensor:
        """Values before the sigmoid, (3 N, 3, h, w)."""
        return super().forward(features).float()
