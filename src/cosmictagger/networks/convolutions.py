"""Convolutions of stacked planes, with weights of torch's 2D or 3D classes."""

from __future__ import annotations

import math
from typing import TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from cosmictagger.networks.fake_quantization import FakeQuantization

Convolution: TypeAlias = nn.Conv2d | nn.Conv3d

MANY_TERMS = 512
"""With channels last, CPUs sum terms sequentially; from this many on, that loses digits and saves no time."""


def convolve(
    convolution: Convolution, x: Tensor, bias: Tensor | None, rounding: FakeQuantization | None = None
) -> Tensor:
    """Apply a convolution to stacked planes, in the type of the values.

    A 3D kernel that is one plane thick equals a 2D kernel on each plane.
    """
    weight, stride, padding = convolution.weight, convolution.stride, convolution.padding
    if weight.dim() == 5:
        weight = weight.squeeze(2)
    if rounding is not None:
        x, weight = rounding.values(x), rounding.weights(weight)
    if x.dtype == torch.float32 and not x.is_cuda and math.prod(weight.shape[1:]) >= MANY_TERMS:
        x, weight = x.contiguous(), weight.contiguous()
    bias = None if bias is None else bias.to(x.dtype)
    return F.conv2d(x, weight.to(x.dtype), bias, stride[-2:], padding[-2:])


def convolve_transposed(
    convolution: nn.ConvTranspose2d | nn.ConvTranspose3d,
    x: Tensor,
    bias: Tensor | None,
    rounding: FakeQuantization | None = None,
) -> Tensor:
    """Apply a transposed convolution to stacked planes."""
    weight = convolution.weight.squeeze(2) if convolution.weight.dim() == 5 else convolution.weight
    if rounding is not None:
        x, weight = rounding.values(x), rounding.weights(weight, axis=1)
    bias = None if bias is None else bias.to(x.dtype)
    return F.conv_transpose2d(x, weight.to(x.dtype), bias, convolution.stride[-2:])


def mix_planes(
    convolution: nn.Conv3d, x: Tensor, bias: Tensor | None, planes: int, rounding: FakeQuantization | None = None
) -> Tensor:
    """Apply a convolution across planes that are stacked along the batch."""
    weight = convolution.weight
    if rounding is not None:
        x, weight = rounding.values(x), rounding.weights(weight)
    count, channels, height, width = x.shape
    volume = x.reshape(planes, count // planes, channels, height, width).permute(1, 2, 0, 3, 4)
    bias = None if bias is None else bias.to(x.dtype)
    mixed = F.conv3d(volume, weight.to(x.dtype), bias, padding=convolution.padding)
    return mixed.permute(2, 0, 1, 3, 4).reshape(count, -1, height, width)
