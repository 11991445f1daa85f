"""Sequences of blocks."""

from __future__ import annotations

from torch import Tensor, nn

from cosmictagger.networks.blocks import Block, Style


class ResidualBlock(nn.Module):
    """Two blocks whose input is added to their output before the last activation."""

    def __init__(self, style: Style, channels: int, *, size: int = 3, groups: int | None = None) -> None:
        super().__init__()
        padding = (size - 1) // 2
        self.convolution_1 = Block(style, channels, channels, size=size, padding=padding, groups=groups)
        self.convolution_2 = Block(style, channels, channels, size=size, padding=padding, groups=groups)

    def forward(self, x: Tensor) -> Tensor:
        """Run both blocks and add the input."""
        result: Tensor = self.convolution_2(self.convolution_1(x), residual=x)
        return result


class BlockSeries(nn.Module):
    """A sequence of blocks, residual or plain."""

    def __init__(
        self, style: Style, channels: int, blocks: int, *, residual: bool, size: int = 3, groups: int | None = None
    ) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            ResidualBlock(style, channels, size=size, groups=groups)
            if residual
            else Block(style, channels, channels, size=size, padding=(size - 1) // 2, groups=groups)
            for _ in range(blocks)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Run the blocks in order."""
        for block in self.blocks:
            x = block(x)
        return x
