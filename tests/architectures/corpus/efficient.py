"""Small and searched convolutional networks in the styles of timm."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from corpus.case import ADAMAX, ADAMW, MOMENTUM, RMSPROP, SGD, Case, Head, pictures
from corpus.convolutional import Residual, classified, conv_bn


class SqueezeExcite(nn.Module):
    """Scales channels by what the whole image says."""

    def __init__(self, width: int, gate: type[nn.Module] = nn.Sigmoid) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, 2, 1), nn.SiLU(), nn.Conv2d(2, width, 1), gate()
        )

    def forward(self, x: Tensor) -> Tensor:
        """Scaled channels."""
        return x * self.layers(x)


def inverted(width: int, activation: type[nn.Module], gate: type[nn.Module] | None) -> Residual:
    """The block of MobileNet and EfficientNet: wide, depthwise, narrow."""
    wide = 3 * width
    layers: list[nn.Module] = [
        nn.Conv2d(width, wide, 1, bias=False),
        nn.BatchNorm2d(wide),
        activation(),
        nn.Conv2d(wide, wide, 3, padding=1, groups=wide, bias=False),
        nn.BatchNorm2d(wide),
        activation(),
    ]
    if gate is not None:
        layers.append(SqueezeExcite(wide, gate))
    layers += [nn.Conv2d(wide, width, 1, bias=False), nn.BatchNorm2d(width)]
    return Residual(nn.Sequential(*layers), width, width, last=nn.Identity())


class ChannelsFirstNorm(nn.LayerNorm):
    """Layer norm over the channels of an image."""

    def forward(self, x: Tensor) -> Tensor:
        """The normalised image."""
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    """Depthwise convolution, layer norm, a perceptron on each pixel, a learned scale, and stochastic depth."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        """The block's result."""
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.scale * self.narrow(functional.gelu(self.wide(y)))
        kept = torch.rand(len(x), 1, 1, 1, device=x.device).lt(0.9) / 0.9
        return x + kept * y.permute(0, 3, 1, 2)


class Repeated(nn.Module):
    """The block of RepVGG while it trains: three branches, each with its normalisation."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.three = nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width))
        self.one = nn.Sequential(nn.Conv2d(width, width, 1, bias=False), nn.BatchNorm2d(width))
        self.same = nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        """The sum of the branches."""
        return functional.relu(self.three(x) + self.one(x) + self.same(x))


class StandardizedConv(nn.Conv2d):
    """A convolution whose weight is standardized at every call, as in BiT and NFNet."""

    def forward(self, x: Tensor) -> Tensor:
        """The convolution."""
        variance, mean = torch.var_mean(self.weight, dim=(1, 2, 3), keepdim=True, correction=0)
        weight = (self.weight - mean) * torch.rsqrt(variance + 1e-6)
        return functional.conv2d(x, weight, self.bias, self.stride, self.padding)


class SelectiveKernel(nn.Module):
    """Attention between two kernel sizes."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.paths = nn.ModuleList([conv_bn(width, width), conv_bn(width, width, 5)])
        self.choice = nn.Linear(width, 2 * width)

    def forward(self, x: Tensor) -> Tensor:
        """A weighted sum of the paths."""
        paths = torch.stack([path(x) for path in self.paths], 1)
        weights = self.choice(paths.sum(1).mean((2, 3))).view(len(x), 2, -1, 1, 1).softmax(1)
        return (paths * weights).sum(1)


EFFICIENT = {
    "MobileNetV2": Case(lambda: classified(conv_bn(3, 4), inverted(4, nn.ReLU6, None), Head(4)), pictures, RMSPROP),
    "MobileNetV3": Case(
        lambda: classified(conv_bn(3, 4), inverted(4, nn.Hardswish, nn.Hardsigmoid), Head(4)), pictures, RMSPROP
    ),
    "EfficientNet": Case(lambda: classified(conv_bn(3, 4), inverted(4, nn.SiLU, nn.Sigmoid), Head(4)), pictures, ADAMW),
    "MnasNet": Case(lambda: classified(conv_bn(3, 4, 3, 2), inverted(4, nn.ReLU, nn.Sigmoid), Head(4)), pictures, SGD),
    "RegNet": Case(
        lambda: classified(
            conv_bn(3, 8),
            Residual(nn.Sequential(conv_bn(8, 8, 3, 1, 2), SqueezeExcite(8), nn.Conv2d(8, 8, 1)), 8, 8),
            Head(8),
        ),
        pictures,
        MOMENTUM,
    ),
    "ConvNeXt": Case(
        lambda: classified(nn.Conv2d(3, 8, 4, 4), ChannelsFirstNorm(8), ConvNeXtBlock(8), Head(8)),
        lambda: pictures(size=32),
        ADAMW,
    ),
    "RepVGG": Case(lambda: classified(conv_bn(3, 8), Repeated(8), Head(8)), pictures, MOMENTUM),
    "BiT": Case(
        lambda: classified(
            StandardizedConv(3, 8, 3, padding=1), nn.GroupNorm(4, 8), nn.ReLU(), nn.Conv2d(8, 8, 3), Head(8)
        ),
        pictures,
        MOMENTUM,
    ),
    "SKNet": Case(lambda: classified(conv_bn(3, 8), SelectiveKernel(8), Head(8)), pictures, ADAMAX),
}
