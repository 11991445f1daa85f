"""Blocks of convolution, normalisation and activation."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from cosmictagger.configuration.choices import ConvMode, Norm
from cosmictagger.networks.convolutions import Convolution, convolve, convolve_transposed, mix_planes
from cosmictagger.networks.fake_quantization import FakeQuantization
from cosmictagger.networks.plane_norm import normalize_planes
from cosmictagger.networks.pooling import double

LEAK = 0.01
"""Slope of the activation for negative values."""

PLANES = 3

BatchNorm = nn.BatchNorm2d | nn.BatchNorm3d


@dataclass(frozen=True, kw_only=True, slots=True)
class Style:
    """Settings that all blocks of a network share."""

    conv_mode: ConvMode = ConvMode.conv_2D
    normalization: Norm = Norm.batch
    bias: bool = True
    rounded: bool = False
    """Whether convolutions simulate 8-bit integers."""

    @property
    def is_volume(self) -> bool:
        """Whether weights have a third dimension."""
        return self.conv_mode is ConvMode.conv_3D

    @property
    def groups(self) -> int:
        """Number of groups of a stack with separate statistics; a volume has one."""
        return 1 if self.is_volume else PLANES

    def convolution(self, inputs: int, outputs: int, size: int, stride: int = 1, padding: int = 0) -> Convolution:
        """A convolution that keeps planes separate."""
        if self.is_volume:
            return nn.Conv3d(
                inputs, outputs, (1, size, size), (1, stride, stride), (0, padding, padding), bias=self.bias
            )
        return nn.Conv2d(inputs, outputs, size, stride, padding, bias=self.bias)

    def norm(self, channels: int) -> nn.Module | None:
        """The normalisation of a number of channels."""
        match self.normalization:
            case Norm.none:
                return None
            case Norm.layer:
                return nn.LayerNorm(channels)
            case Norm.batch:
                return nn.BatchNorm3d(channels) if self.is_volume else nn.BatchNorm2d(channels)


class Block(nn.Module):
    """Convolution, normalisation, activation."""

    def __init__(
        self,
        style: Style,
        inputs: int,
        outputs: int,
        *,
        size: int = 3,
        stride: int = 1,
        padding: int = 1,
        slope: float = LEAK,
        groups: int | None = None,
    ) -> None:
        super().__init__()
        self.conv: nn.Module = style.convolution(inputs, outputs, size, stride, padding)
        self.norm = style.norm(outputs)
        self.slope = slope
        self.groups = style.groups if groups is None else groups
        self.rounding = FakeQuantization() if style.rounded else None

    def convolved(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """The convolution's output, before normalisation."""
        return convolve(self.conv, x, bias, self.rounding)  # type: ignore[arg-type]

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """Run the block; a residual is added before the activation."""
        bias: Tensor | None = self.conv.bias  # type: ignore[assignment]
        if isinstance(self.norm, BatchNorm):
            if self.training:
                return normalized(self.norm, self.convolved(x, None), bias, residual, self.groups, self.slope)
            return activated(with_running_statistics(self.norm, self.convolved(x, bias)), residual, self.slope)
        y = self.convolved(x, bias)
        if isinstance(self.norm, nn.LayerNorm):
            y = self.norm(y.permute(0, 2, 3, 1).to(self.norm.weight.dtype)).to(y.dtype).permute(0, 3, 1, 2)
        return activated(y, residual, self.slope)


class UpsamplingBlock(Block):
    """An interpolation to twice the size and a 1x1 block.

    Both are linear and interpolation preserves constants, so the convolution runs first, on a quarter of the pixels.
    """

    def __init__(self, style: Style, inputs: int, outputs: int, *, slope: float = LEAK) -> None:
        super().__init__(style, inputs, outputs, size=1, padding=0, slope=slope)
        self.nearest = style.is_volume

    def convolved(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """The convolved image at twice the size."""
        y = super().convolved(x, bias)
        if self.nearest:
            return F.interpolate(y, scale_factor=2, mode="nearest")
        return double(y)


class TransposedBlock(Block):
    """A transposed convolution to twice the size, normalised and activated."""

    def __init__(self, style: Style, inputs: int, outputs: int, *, slope: float = LEAK) -> None:
        super().__init__(style, inputs, outputs, size=1, padding=0, slope=slope)
        if style.is_volume:
            self.conv = nn.ConvTranspose3d(inputs, outputs, (1, 2, 2), (1, 2, 2), bias=style.bias)
        else:
            self.conv = nn.ConvTranspose2d(inputs, outputs, 2, 2, bias=style.bias)

    def convolved(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """The image at twice the size."""
        return convolve_transposed(self.conv, x, bias, self.rounding)  # type: ignore[arg-type]


class PlaneMixingBlock(Block):
    """A block of a volume with a kernel across the three planes, one pixel wide."""

    def __init__(self, style: Style, inputs: int, outputs: int) -> None:
        super().__init__(style, inputs, outputs, size=1, padding=0)
        self.conv = nn.Conv3d(inputs, outputs, (3, 1, 1), padding=(1, 0, 0), bias=style.bias)

    def convolved(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """The planes, each mixed with its neighbours."""
        return mix_planes(self.conv, x, bias, PLANES, self.rounding)  # type: ignore[arg-type]


def normalized(
    norm: BatchNorm,
    x: Tensor,
    shift: Tensor | None,
    residual: Tensor | None,
    groups: int,
    slope: float,
) -> Tensor:
    """Normalise each group of a stack by its own statistics, and update the running statistics in turn."""
    if not x.is_contiguous() and not x.is_contiguous(memory_format=torch.channels_last):
        # Torch's kernel leaves parts of its result unwritten in other layouts, such as a volume's single event has.
        x = x.contiguous()
    y: Tensor
    y, mean, variance, _ = normalize_planes(x, shift, norm.weight, norm.bias, residual, groups, slope, norm.eps)
    with torch.no_grad():
        count = x.numel() // x.shape[1] // groups
        _update_running(norm.running_mean, mean, norm.momentum)
        _update_running(norm.running_var, variance * (count / max(count - 1, 1)), norm.momentum)
        norm.num_batches_tracked.add_(groups)  # type: ignore[union-attr]
    return y


def _update_running(running: Tensor | None, values: Tensor, momentum: float | None) -> None:
    assert running is not None
    assert momentum is not None
    for value in values:
        running.lerp_(value, momentum)


def with_running_statistics(norm: BatchNorm, x: Tensor) -> Tensor:
    """Normalise as in evaluation."""
    return F.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias, False, 0.0, norm.eps)


def activated(x: Tensor, residual: Tensor | None, slope: float) -> Tensor:
    """Add the residual and apply the activation in place."""
    if residual is not None:
        x = x + residual
    return x if slope == 1.0 else F.leaky_relu(x, slope, inplace=True)
