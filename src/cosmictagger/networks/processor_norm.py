"""Normalisation of stacked planes on a CPU, with channels last.

Torch's kernel for this layout sums the pixels of a channel sequentially in float32: precision drops with the image size
and depends on the number of threads. Here planes are split into blocks that fit in the cache. Torch sums each block
pairwise, squares are of differences from a mean, and the blocks' results are combined in float64.

A CPU handles one block after the other. Other devices, such as a Gaudi, sum the same blocks in one operation, so that
an emulated card gives the same bits as the CPU.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu_

WIDTH = 512
"""Approximate size of a row. Rows of a few channels would leave most of a CPU's vector unit idle."""

BLOCK = 1 << 18
"""Approximate size of a block."""


def serves(x: Tensor) -> bool:
    """Whether a tensor is channels-last and not on a CUDA card, where torch's kernel is accurate."""
    channels_last = x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)
    return channels_last and not x.is_contiguous() and not x.is_cuda


def normalize(
    x: Tensor, weight: Tensor, bias: Tensor, residual: Tensor | None, planes: int, slope: float, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Values, and means, variances and inverse standard deviations of each plane."""
    blocks = _Blocks(x, planes)
    mean, variance = blocks.moments(x)
    inverse = torch.rsqrt(variance + eps)
    scale = weight.double() * inverse
    # The offset compensates for the rounding of the mean.
    centre, missed = blocks.wide(mean), mean - mean.to(blocks.precision)
    factor, offset = blocks.wide(scale), blocks.wide(bias.double() - missed * scale)
    y = torch.empty_like(x)
    others = [None] * blocks.pieces if residual is None else blocks.rows(residual)
    for rows, out, other in zip(blocks.rows(x), blocks.rows(y), others, strict=True):
        value = blocks.difference(rows, centre)
        torch.addcmul(offset, value, factor, out=value)
        if other is not None:
            value += other
        out.copy_(value if slope == 1.0 else leaky_relu_(value, slope))
    return y, mean.to(weight.dtype), variance.to(weight.dtype), inverse.to(weight.dtype)


def normalize_backward(
    gradient: Tensor, x: Tensor, y: Tensor, weight: Tensor, statistics: Tensor, slope: float, residual: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of x, weight, bias and residual."""
    blocks = _Blocks(x, statistics.shape[1])
    into_x = torch.empty_like(x)
    into_residual = torch.empty_like(x) if residual else x.new_empty(0)
    # If there is no residual, the gradient before the activation is stored in the result's memory.
    before = into_residual if residual else into_x
    mean, inverse = statistics.double()
    centre, sums, products = blocks.wide(mean), [], []
    for given, rows, result, out in zip(*map(blocks.rows, (gradient, x, y, before)), strict=True):
        torch.ops.aten.leaky_relu_backward.grad_input(given, result, slope, True, grad_input=out)
        sums.append(out.sum(2, dtype=blocks.precision))
        products.append(blocks.difference(rows, centre).mul_(out).sum(2))
    into_bias, into_weight = blocks.total(sums), blocks.total(products) * inverse
    scale = weight.double() * inverse
    factor, offset = blocks.wide(scale), blocks.wide(-scale * into_bias / blocks.count)
    slant = blocks.wide(-scale * inverse * into_weight / blocks.count)
    for rows, inner, out in zip(*map(blocks.rows, (x, before, into_x)), strict=True):
        value = blocks.difference(rows, centre)
        torch.addcmul(offset, value, slant, out=value)
        torch.addcmul(value, inner, factor, out=out)
    return into_x, into_weight.sum(0).to(weight.dtype), into_bias.sum(0).to(weight.dtype), into_residual


class _Blocks:
    """Splits a stack of planes into blocks of rows; a row holds several pixels with all channels.

    The blocks come in pieces that are computed at once: a single block on a CPU, whose cache it fits, and elsewhere all
    blocks of the same size.
    """

    def __init__(self, x: Tensor, planes: int) -> None:
        self.planes, channels = planes, x.shape[1]
        self.count = x.numel() // channels // planes
        self.precision = torch.promote_types(x.dtype, torch.float32)
        self._pixels = _pixels_in_a_row(self.count, channels)
        self._width = self._pixels * channels
        self._height = self.count // self._pixels
        self._rows = min(max(BLOCK // self._width // planes, 1), self._height)
        self._at_once = 1 if x.is_cpu else self._height // self._rows
        self._size = self._at_once * self._rows
        self.pieces = -(-self._height // self._size)
        shape = (planes, self._at_once, self._rows, self._width)
        self._scratch = torch.empty(shape, dtype=self.precision, device=x.device)

    def rows(self, x: Tensor) -> tuple[Tensor, ...]:
        """A tensor in pieces: (planes, blocks, rows, row size) each."""
        x = x.contiguous(memory_format=torch.channels_last)
        pieces: tuple[Tensor, ...]
        pieces = x.permute(0, 2, 3, 1).view(self.planes, 1, self._height, self._width).split(self._size, 2)
        if self._at_once > 1:
            pieces = (pieces[0].view(self._scratch.shape), *pieces[1:])
        return pieces

    def difference(self, rows: Tensor, centre: Tensor) -> Tensor:
        """Rows minus a centre, in memory that all pieces share."""
        return torch.sub(rows, centre, out=self._scratch[:, : rows.shape[1], : rows.shape[2]])

    def wide(self, channels: Tensor) -> Tensor:
        """Values per plane and channel, expanded to rows of a block."""
        return channels.to(self.precision).repeat(1, self._pixels).view(self.planes, 1, 1, self._width)

    def total(self, sums: list[Tensor]) -> Tensor:
        """Sums per plane and channel in float64, from the column sums of the blocks."""
        columns = torch.cat(sums, 1).sum(1, dtype=torch.float64)
        return columns.view(self.planes, self._pixels, -1).sum(1)

    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance per plane and channel in float64, reading memory once."""
        sums, squares, centres = [], [], []
        for rows in self.rows(x):
            sums.append(rows.sum(2, dtype=self.precision))
            centres.append(sums[-1] / rows.shape[2])
            squares.append(self.difference(rows, centres[-1].unsqueeze(2)).square_().sum(2))
        mean = self.total(sums) / self.count
        # Squares relative to the columns' means leave out how these differ from the total mean.
        between = [
            (centre - self.wide(mean).squeeze(2)).square_().mul_(rows.shape[2])
            for centre, rows in zip(centres, self.rows(x), strict=True)
        ]
        return mean, self.total([*squares, *between]) / self.count


@cache
def _pixels_in_a_row(count: int, channels: int) -> int:
    """The largest number of pixels per row that divides the count."""
    most = min(max(WIDTH // channels, 1), count)
    return next(pixels for pixels in range(most, 0, -1) if count % pixels == 0)
