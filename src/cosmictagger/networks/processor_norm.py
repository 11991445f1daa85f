"""Normalisation of stacked planes on a processor, with channels last.

Torch's kernel for this layout adds the pixels of a channel one after another in float32: the larger the image, the more
digits are lost, and another number of threads loses others. Here planes are cut into blocks that fit in the cache. Torch adds up
each block pairwise, squares are those of differences from a mean, and what the blocks found is put together in float64.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu_

WIDTH = 512
"""About how many numbers a row has. Rows of a few channels would leave most of a processor's vector unit idle."""

BLOCK = 1 << 18
"""About how many numbers a block has."""


def serves(x: Tensor) -> bool:
    """Whether a tensor has channels last and is not on a CUDA card, where torch's own kernel adds accurately."""
    channels_last = x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)
    return channels_last and not x.is_contiguous() and not x.is_cuda


def normalize(
    x: Tensor, weight: Tensor, bias: Tensor, residual: Tensor | None, planes: int, slope: float, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Values, and means, variances and inverse deviations of each plane."""
    cut = _Cut(x, planes)
    mean, variance = cut.moments(x)
    inverse = torch.rsqrt(variance + eps)
    scale = weight.double() * inverse
    # What the rounded mean misses, the offset adds.
    centre, missed = cut.wide(mean), mean - mean.to(cut.precision)
    factor, offset = cut.wide(scale), cut.wide(bias.double() - missed * scale)
    y = torch.empty_like(x)
    others = [None] * cut.blocks if residual is None else cut.rows(residual)
    for rows, out, other in zip(cut.rows(x), cut.rows(y), others, strict=True):
        value = cut.difference(rows, centre)
        torch.addcmul(offset, value, factor, out=value)
        if other is not None:
            value += other
        out.copy_(value if slope == 1.0 else leaky_relu_(value, slope))
    return y, mean.to(weight.dtype), variance.to(weight.dtype), inverse.to(weight.dtype)


def normalize_backward(
    gradient: Tensor, x: Tensor, y: Tensor, weight: Tensor, statistics: Tensor, slope: float, residual: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of x, weight, bias and residual."""
    cut = _Cut(x, statistics.shape[1])
    into_x = torch.empty_like(x)
    into_residual = torch.empty_like(x) if residual else x.new_empty(0)
    # Where nobody else needs the gradient before the activation, it waits in the place of the result.
    before = into_residual if residual else into_x
    mean, inverse = statistics.double()
    centre, sums, products = cut.wide(mean), [], []
    for given, rows, result, out in zip(*map(cut.rows, (gradient, x, y, before)), strict=True):
        torch.ops.aten.leaky_relu_backward.grad_input(given, result, slope, True, grad_input=out)
        sums.append(out.sum(1, dtype=cut.precision))
        products.append(cut.difference(rows, centre).mul_(out).sum(1))
    into_bias, into_weight = cut.total(sums), cut.total(products) * inverse
    scale = weight.double() * inverse
    factor, offset = cut.wide(scale), cut.wide(-scale * into_bias / cut.count)
    slant = cut.wide(-scale * inverse * into_weight / cut.count)
    for rows, inner, out in zip(*map(cut.rows, (x, before, into_x)), strict=True):
        value = cut.difference(rows, centre)
        torch.addcmul(offset, value, slant, out=value)
        torch.addcmul(value, inner, factor, out=out)
    return into_x, into_weight.sum(0).to(weight.dtype), into_bias.sum(0).to(weight.dtype), into_residual


class _Cut:
    """How a stack of planes is cut into blocks of rows; a row holds several pixels with all of their channels."""

    def __init__(self, x: Tensor, planes: int) -> None:
        self.planes, channels = planes, x.shape[1]
        self.count = x.numel() // channels // planes
        self.precision = torch.promote_types(x.dtype, torch.float32)
        self._pixels = _pixels_in_a_row(self.count, channels)
        self._width = self._pixels * channels
        self._height = self.count // self._pixels
        # Elsewhere than on a processor there is no cache to care for.
        self._rows = max(BLOCK // self._width // planes, 1) if x.is_cpu else self._height
        self.blocks = -(-self._height // self._rows)
        shape = (planes, min(self._rows, self._height), self._width)
        self._scratch = torch.empty(shape, dtype=self.precision, device=x.device)

    def rows(self, x: Tensor) -> tuple[Tensor, ...]:
        """A tensor in blocks of rows: (planes, rows, numbers of a row) each."""
        x = x.contiguous(memory_format=torch.channels_last)
        blocks: tuple[Tensor, ...]
        blocks = x.permute(0, 2, 3, 1).view(self.planes, self._height, self._width).split(self._rows, 1)
        return blocks

    def difference(self, rows: Tensor, centre: Tensor) -> Tensor:
        """Rows less a centre; the same place in memory serves every block."""
        return torch.sub(rows, centre, out=self._scratch[:, : rows.shape[1]])

    def wide(self, channels: Tensor) -> Tensor:
        """NumberTypes of each plane's channels, as rows that go with those of the blocks."""
        return channels.to(self.precision).repeat(1, self._pixels).unsqueeze(1)

    def total(self, sums: list[Tensor]) -> Tensor:
        """The sums of each plane's channels, in float64, from those of the columns of each block."""
        columns = torch.stack(sums, 1).sum(1, dtype=torch.float64)
        return columns.view(self.planes, self._pixels, -1).sum(1)

    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of each plane's channels in float64, reading each number from memory once."""
        sums, squares, centres = [], [], []
        for rows in self.rows(x):
            sums.append(rows.sum(1, dtype=self.precision))
            centres.append(sums[-1] / rows.shape[1])
            squares.append(self.difference(rows, centres[-1].unsqueeze(1)).square_().sum(1))
        mean = self.total(sums) / self.count
        # Squares of differences from the columns' own means leave out how these differ from the mean of all.
        between = [
            (centre - self.wide(mean).squeeze(1)).square_().mul_(rows.shape[1])
            for centre, rows in zip(centres, self.rows(x), strict=True)
        ]
        return mean, self.total([*squares, *between]) / self.count


@cache
def _pixels_in_a_row(count: int, channels: int) -> int:
    """The most pixels that fit in a row and divide so many."""
    most = min(max(WIDTH // channels, 1), count)
    return next(pixels for pixels in range(most, 0, -1) if count % pixels == 0)
