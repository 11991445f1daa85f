"""The levels of the U-shaped network."""

from __future__ import annotations

from torch import Tensor, cat, nn

from cosmictagger.configuration.choices import Connection, DownSampling, GrowthRate, UpSampling
from cosmictagger.configuration.network import Network
from cosmictagger.networks.blocks import LEAK, PLANES, Block, PlaneMixingBlock, Style, TransposedBlock, UpsamplingBlock
from cosmictagger.networks.pooling import halve
from cosmictagger.networks.series import BlockSeries


class MaxPooling(nn.Module):
    """Max pooling, then a 1x1 block to more channels."""

    def __init__(self, style: Style, inputs: int, outputs: int) -> None:
        super().__init__()
        self.bottleneck = Block(style, inputs, outputs, size=1, padding=0)

    def forward(self, x: Tensor) -> Tensor:
        """Halve the image."""
        result: Tensor = self.bottleneck(halve(x))
        return result


class Interpolation(nn.Module):
    """Interpolation to twice the size, then a 1x1 block to fewer channels."""

    def __init__(self, style: Style, inputs: int, outputs: int) -> None:
        super().__init__()
        self.bottleneck = UpsamplingBlock(style, inputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Double the image."""
        result: Tensor = self.bottleneck(x)
        return result


class Concatenation(nn.Module):
    """Concatenated decoder and skip features, narrowed by a 1x1 block."""

    def __init__(self, style: Style, channels: int) -> None:
        super().__init__()
        self.bottleneck = Block(style, 2 * channels, channels, size=1, padding=0)

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        """Join both."""
        result: Tensor = self.bottleneck(cat((x, skip), dim=1))
        return result


class Sum(nn.Module):
    """The sum of decoder and skip features."""

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        """Join both."""
        return x + skip


class NoConnection(nn.Module):
    """The decoder features only."""

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        """Ignore the skip features."""
        return x


class Deepest(nn.Module):
    """The deepest block, which joins the planes, convolves them and splits them again."""

    def __init__(self, network: Network, style: Style, channels: int) -> None:
        super().__init__()
        narrow, apart = network.bottleneck_deepest, network.block_concat
        self.joins = not style.is_volume and not apart
        groups = 1 if self.joins else style.groups
        outside = PLANES * channels if self.joins else channels
        self.bottleneck = _end(style, outside, narrow, groups)
        self.blocks = BlockSeries(
            style,
            narrow,
            network.blocks_deepest_layer,
            residual=network.residual,
            size=network.filter_size_deepest,
            groups=groups,
        )
        self.unbottleneck = _end(style, narrow, outside, groups)

    def forward(self, x: Tensor) -> Tensor:
        """Run the deepest block."""
        y = joined(x) if self.joins else x
        y = self.unbottleneck(self.blocks(self.bottleneck(y)))
        return split(y) if self.joins else y


def _end(style: Style, inputs: int, outputs: int, groups: int) -> Block:
    if style.is_volume:
        return PlaneMixingBlock(style, inputs, outputs)
    return Block(style, inputs, outputs, size=1, padding=0, groups=groups)


def joined(x: Tensor) -> Tensor:
    """Move stacked planes to the channel dimension."""
    return cat(x.chunk(PLANES), dim=1)


def split(x: Tensor) -> Tensor:
    """Move planes from the channel dimension back to a stack."""
    return cat(x.chunk(PLANES, dim=1))


class Core(nn.Module):
    """A level and all levels below it."""

    def __init__(self, network: Network, style: Style, depth: int, channels: int) -> None:
        super().__init__()
        self.main_module: nn.Module
        if depth == 0:
            self.main_module = Deepest(network, style, channels)
            self.down_blocks = None
            return
        added = network.growth_rate is GrowthRate.additive
        deeper = channels + network.n_initial_filters if added else 2 * channels
        self.skips_late = style.is_volume
        self.down_blocks = BlockSeries(style, channels, network.blocks_per_layer, residual=network.residual)
        self.downsample = _downsample(network, style, channels, deeper)
        self.main_module = Core(network, style, depth - 1, deeper)
        self.upsample = _upsample(network, style, deeper, channels)
        # In the original's order, which its checkpoints follow: the optimizer's state is listed by position.
        self.up_blocks = BlockSeries(style, channels, network.blocks_per_layer, residual=network.residual)
        self.connection = _connection(network, style, channels)

    def forward(self, x: Tensor, levels: list[Tensor] | None = None) -> Tensor:
        """Run down, through the levels below, and up; appends each level's output to ``levels``, deepest first."""
        result = self._deepest(x) if self.down_blocks is None else self._around(x, levels)
        if levels is not None:
            levels.append(result)
        return result

    def _deepest(self, x: Tensor) -> Tensor:
        return self.main_module(x)  # type: ignore[no-any-return]

    def _around(self, x: Tensor, levels: list[Tensor] | None) -> Tensor:
        assert self.down_blocks is not None
        down = self.down_blocks(x)
        below = self.upsample(self.main_module(self.downsample(down), levels))
        if self.skips_late:
            return self.connection(self.up_blocks(below), down)  # type: ignore[no-any-return]
        return self.up_blocks(self.connection(below, x))  # type: ignore[no-any-return]


def _slope(style: Style) -> float:
    """Resizing convolutions of volumes use a plain ReLU."""
    return 0.0 if style.is_volume else LEAK


def _downsample(network: Network, style: Style, inputs: int, outputs: int) -> nn.Module:
    if network.downsampling is DownSampling.max_pooling:
        return MaxPooling(style, inputs, outputs)
    return Block(style, inputs, outputs, size=2, stride=2, padding=0, slope=_slope(style))


def _upsample(network: Network, style: Style, inputs: int, outputs: int) -> nn.Module:
    if network.upsampling is UpSampling.interpolation:
        return Interpolation(style, inputs, outputs)
    return TransposedBlock(style, inputs, outputs, slope=_slope(style))


def _connection(network: Network, style: Style, channels: int) -> nn.Module:
    match network.connections:
        case Connection.concat:
            return Concatenation(style, channels)
        case Connection.sum:
            return Sum()
        case Connection.none:
            return NoConnection()
