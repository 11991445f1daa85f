"""Convolutional networks in the styles of torchvision."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from corpus.case import ADAM, ADAMW, MOMENTUM, RMSPROP, SGD, Case, Classified, Head, pictures


def conv_bn(given: int, result: int, kernel: int = 3, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """Convolution, normalisation and ReLU."""
    return nn.Sequential(
        nn.Conv2d(given, result, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(result),
        nn.ReLU(inplace=True),
    )


class Residual(nn.Module):
    """A block whose input is added to its result, through a projection if sizes differ."""

    def __init__(
        self, body: nn.Module, given: int, result: int, stride: int = 1, last: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.body = body
        self.last = last or nn.ReLU()
        self.shortcut = nn.Identity() if given == result and stride == 1 else nn.Conv2d(given, result, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        """The block's result."""
        return self.last(self.body(x) + self.shortcut(x))


def bottleneck(given: int, middle: int, result: int, stride: int = 1, groups: int = 1) -> Residual:
    """The block of ResNet-50 and ResNeXt."""
    body = nn.Sequential(
        conv_bn(given, middle, 1),
        conv_bn(middle, middle, 3, stride, groups),
        nn.Conv2d(middle, result, 1, bias=False),
        nn.BatchNorm2d(result),
    )
    return Residual(body, given, result, stride)


def resnet() -> nn.Module:
    """A strided stem, pooling and two basic blocks."""
    basic = nn.Sequential(conv_bn(8, 8), nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8))
    wider = nn.Sequential(conv_bn(8, 16, 3, 2), nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16))
    stem = nn.Sequential(conv_bn(3, 8, 7, 2), nn.MaxPool2d(3, 2, 1))
    return nn.Sequential(stem, Residual(basic, 8, 8), Residual(wider, 8, 16, 2), Head(16))


class Dense(nn.Module):
    """A dense block: each layer reads all results before it."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.BatchNorm2d(8 + 4 * i), nn.ReLU(), nn.Conv2d(8 + 4 * i, 4, 3, padding=1)) for i in range(3)
        )
        self.transition = nn.Sequential(nn.BatchNorm2d(20), nn.ReLU(), nn.Conv2d(20, 10, 1), nn.AvgPool2d(2))

    def forward(self, x: Tensor) -> Tensor:
        """The block's result."""
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return self.transition(x)


class Inception(nn.Module):
    """Branches of several sizes side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.branches = nn.ModuleList(
            [
                conv_bn(8, 4, 1),
                nn.Sequential(conv_bn(8, 4, 1), conv_bn(4, 4, 3)),
                nn.Sequential(conv_bn(8, 2, 1), conv_bn(2, 4, 5)),
                nn.Sequential(nn.MaxPool2d(3, 1, 1), conv_bn(8, 4, 1)),
            ]
        )

    def forward(self, x: Tensor) -> Tensor:
        """All branches, one after the other in channels."""
        return torch.cat([branch(x) for branch in self.branches], 1)


class Shuffle(nn.Module):
    """The block of ShuffleNet: half of the channels pass, then both halves are interleaved."""

    def __init__(self) -> None:
        super().__init__()
        self.branch = nn.Sequential(conv_bn(4, 4, 1), nn.Conv2d(4, 4, 3, padding=1, groups=4), nn.BatchNorm2d(4))

    def forward(self, x: Tensor) -> Tensor:
        """The block's result."""
        one, other = x.chunk(2, 1)
        joined = torch.cat([one, self.branch(other)], 1)
        count, channels, height, width = joined.shape
        return joined.view(count, 2, channels // 2, height, width).transpose(1, 2).reshape(joined.shape)


class Fire(nn.Module):
    """The block of SqueezeNet."""

    def __init__(self) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(8, 3, 1)
        self.one, self.three = nn.Conv2d(3, 6, 1), nn.Conv2d(3, 6, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """The block's result."""
        x = self.squeeze(x).relu()
        return torch.cat([self.one(x).relu(), self.three(x).relu()], 1)


class Segmentation(nn.Module):
    """Dilated convolutions, a pooled branch, and bilinear upsampling, as in DeepLab."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = conv_bn(3, 8, 3, 2)
        self.branches = nn.ModuleList(nn.Conv2d(8, 4, 3, padding=rate, dilation=rate) for rate in (1, 2))
        self.pooled = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 4, 1), nn.ReLU())
        self.last = nn.Conv2d(12, 5, 1)

    def forward(self, x: Tensor, classes: Tensor) -> Tensor:
        """The loss of each pixel's class."""
        features = self.stem(x)
        size = features.shape[2:]
        pooled = functional.interpolate(self.pooled(features), size=size, mode="bilinear", align_corners=False)
        joined = torch.cat([*(branch(features) for branch in self.branches), pooled], 1)
        scores = functional.interpolate(self.last(joined), scale_factor=2, mode="bilinear", align_corners=False)
        return functional.cross_entropy(scores, classes, ignore_index=4, label_smoothing=0.1)


class Pyramid(nn.Module):
    """Features of several sizes added from the top down, as in object detectors."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([conv_bn(3, 8, 3, 2), conv_bn(8, 16, 3, 2)])
        self.across = nn.ModuleList([nn.Conv2d(8, 6, 1), nn.Conv2d(16, 6, 1)])
        self.last = nn.Conv2d(6, 5, 3, padding=1)

    def forward(self, x: Tensor, boxes: Tensor) -> Tensor:
        """The loss of boxes and scores at each place."""
        small = self.down[0](x)
        smaller = self.down[1](small)
        top = self.across[1](smaller)
        merged = self.across[0](small) + functional.interpolate(top, scale_factor=2, mode="nearest")
        found = self.last(merged)
        scores = functional.binary_cross_entropy_with_logits(found[:, 4], boxes[:, 4].sigmoid())
        return functional.smooth_l1_loss(found[:, :4], boxes[:, :4]) + scores


class VideoNetwork(nn.Module):
    """Convolutions over time too."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv3d(3, 6, 3, padding=1), nn.BatchNorm3d(6), nn.ReLU(), nn.MaxPool3d(2), nn.AdaptiveAvgPool3d(1)
        )
        self.last = nn.Linear(6, 5)

    def forward(self, x: Tensor, classes: Tensor) -> Tensor:
        """The loss."""
        return functional.cross_entropy(self.last(self.layers(x).flatten(1)), classes)


def classified(*layers: nn.Module) -> nn.Module:
    """A classifier of pictures."""
    return Classified(nn.Sequential(*layers))


CONVOLUTIONAL = {
    "ResNet": Case(lambda: Classified(resnet()), lambda: pictures(size=32), MOMENTUM),
    "ResNet bottleneck": Case(lambda: classified(conv_bn(3, 8), bottleneck(8, 4, 16, 2), Head(16)), pictures, ADAM),
    "ResNeXt": Case(lambda: classified(conv_bn(3, 8), bottleneck(8, 8, 16, 2, 4), Head(16)), pictures, MOMENTUM),
    "Wide ResNet": Case(lambda: classified(conv_bn(3, 8), bottleneck(8, 16, 16), Head(16)), pictures, SGD),
    "DenseNet": Case(lambda: classified(conv_bn(3, 8), Dense(), Head(10)), pictures, MOMENTUM),
    "Inception": Case(lambda: classified(conv_bn(3, 8), Inception(), Head(16)), pictures, RMSPROP),
    "ShuffleNet": Case(lambda: classified(conv_bn(3, 8), Shuffle(), Head(8)), pictures, MOMENTUM),
    "SqueezeNet": Case(lambda: classified(conv_bn(3, 8), Fire(), nn.Dropout(0.5), Head(12)), pictures, ADAM),
    "VGG": Case(
        lambda: classified(
            conv_bn(3, 8), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 5)
        ),
        pictures,
        MOMENTUM,
    ),
    "AlexNet": Case(
        lambda: classified(
            nn.Conv2d(3, 8, 5, 2, 2),
            nn.ReLU(),
            nn.LocalResponseNorm(3),
            nn.MaxPool2d(3, 2),
            nn.Flatten(),
            nn.Linear(72, 5),
        ),
        pictures,
        SGD,
    ),
    "DeepLab": Case(Segmentation, lambda: [torch.randn(2, 3, 16, 16), torch.randint(0, 5, (2, 16, 16))], MOMENTUM),
    "feature pyramid": Case(Pyramid, lambda: [torch.randn(2, 3, 16, 16), torch.randn(2, 5, 8, 8)], ADAMW),
    "video network": Case(VideoNetwork, lambda: [torch.randn(2, 3, 4, 8, 8), torch.arange(2)], MOMENTUM),
}
