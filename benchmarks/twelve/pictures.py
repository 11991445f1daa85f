"""Networks for pictures: ViT, ConvNeXt, ResNet, a U-Net and a diffusion U-Net."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.twelve.language import Attention
from benchmarks.twelve.subject import ADAM, ADAMW, MOMENTUM, Subject


class Classified(nn.Module):
    """A network with cross entropy as its loss."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor, classes: Tensor) -> Tensor:
        """The loss."""
        return functional.cross_entropy(self.network(x).float(), classes)


class VisionBlock(nn.Module):
    """Attention and a perceptron."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """The block's result."""
        given = self.first(x)
        x = x + self.attention(given, given, causal=False)
        return x + self.perceptron(self.second(x))


class VisionTransformer(nn.Module):
    """A vision transformer with a class token."""

    def __init__(self, size: int, patch: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.Sequential(*(VisionBlock(width, heads) for _ in range(layers)))
        self.norm, self.result = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x: Tensor) -> Tensor:
        """The scores of the classes."""
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.places
        return self.result(self.norm(self.blocks(x))[:, 0])


def double(given: int, result: int) -> nn.Sequential:
    """Two convolutions with normalisation and SiLU."""
    layers = [(nn.Conv2d(n, result, 3, padding=1), nn.BatchNorm2d(result), nn.SiLU()) for n in (given, result)]
    return nn.Sequential(*itertools.chain.from_iterable(layers))


class UNet(nn.Module):
    """Down by pooling, up by transposed convolutions, with skips."""

    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.down = nn.ModuleList(double(*pair) for pair in zip((3, *widths), widths, strict=False))
        pairs = list(itertools.pairwise(widths))[::-1]
        self.up = nn.ModuleList(nn.ConvTranspose2d(wide, narrow, 2, stride=2) for narrow, wide in pairs)
        self.merged = nn.ModuleList(double(2 * narrow, narrow) for narrow, _ in pairs)
        self.last = nn.Conv2d(widths[0], 1, 1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """The loss of each pixel."""
        skips: list[Tensor] = []
        for number, layer in enumerate(self.down):
            x = layer(functional.max_pool2d(x, 2) if number else x)
            skips.append(x)
        skips.pop()
        for up, merged in zip(self.up, self.merged, strict=True):
            x = merged(torch.cat([skips.pop(), up(x)], 1))
        return functional.binary_cross_entropy_with_logits(self.last(x).float(), mask)


class DiffusionBlock(nn.Module):
    """Group norm, SiLU and convolutions, with a shift from the time."""

    def __init__(self, given: int, result: int, time: int) -> None:
        super().__init__()
        self.first, self.second = nn.GroupNorm(8, given), nn.GroupNorm(8, result)
        self.one, self.other = nn.Conv2d(given, result, 3, padding=1), nn.Conv2d(result, result, 3, padding=1)
        self.time = nn.Linear(time, result)
        self.same = nn.Identity() if given == result else nn.Conv2d(given, result, 1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        """The block's result."""
        h = self.one(functional.silu(self.first(x))) + self.time(time)[:, :, None, None]
        return self.same(x) + self.other(functional.silu(self.second(h)))


class DiffusionUNet(nn.Module):
    """Predicts the noise in pictures; attention at the lowest resolution."""

    def __init__(self, width: int, factors: tuple[int, ...]) -> None:
        super().__init__()
        widths = [width * factor for factor in factors]
        time = 4 * width
        self.width = width
        self.stem, self.time = nn.Conv2d(3, width, 3, padding=1), nn.Sequential(nn.Linear(width, time), nn.SiLU())
        pairs = list(zip([width, *widths], widths, strict=False))
        self.down = nn.ModuleList(DiffusionBlock(given, result, time) for given, result in pairs)
        self.smaller = nn.ModuleList(nn.Conv2d(each, each, 3, 2, 1) for each in widths[:-1])
        self.middle, self.attention = DiffusionBlock(widths[-1], widths[-1], time), Attention(widths[-1], 8)
        self.up = nn.ModuleList(DiffusionBlock(2 * result, given, time) for given, result in pairs[::-1])
        self.norm, self.last = nn.GroupNorm(8, width), nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x: Tensor, step: Tensor, noise: Tensor) -> Tensor:
        """The loss of the predicted noise."""
        half = self.width // 2
        scale = torch.exp(-math.log(10000) * torch.arange(half, device=x.device) / half)
        angles = step[:, None] * scale
        time = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        h, skips = self.stem(x), []
        for number, block in enumerate(self.down):
            h = block(self.smaller[number - 1](h) if number else h, time)
            skips.append(h)
        h = self.middle(h, time)
        flat = h.flatten(2).transpose(1, 2)
        h = h + self.attention(flat, flat, causal=False).transpose(1, 2).unflatten(2, h.shape[2:])
        for number, block in enumerate(self.up):
            if number:
                h = functional.interpolate(h, scale_factor=2.0, mode="nearest")
            h = block(torch.cat([h, skips.pop()], 1), time)
        return functional.mse_loss(self.last(functional.silu(self.norm(h))).float(), noise)


def _classes(batch: int, size: int) -> tuple[Tensor, Tensor]:
    return torch.randn(batch, 3, size, size), torch.randint(0, 1000, (batch,))


def _vision_transformer(batch: int, size: int, **sizes: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return Classified(VisionTransformer(size, **sizes)), _classes(batch, size)


def _torchvision(name: str, batch: int, size: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    import torchvision

    return Classified(getattr(torchvision.models, name)()), _classes(batch, size)


def _unet(batch: int, size: int, widths: tuple[int, ...]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return UNet(widths), (torch.randn(batch, 3, size, size), torch.rand(batch, 1, size, size))


def _diffusion(batch: int, size: int, **sizes) -> tuple[nn.Module, tuple[Tensor, ...]]:
    pictures = torch.randn(batch, 3, size, size)
    return DiffusionUNet(**sizes), (pictures, torch.randint(0, 1000, (batch,)), torch.randn_like(pictures))


PICTURES = {
    "ViT-S/16, batch 64": Subject(
        _vision_transformer,
        ADAMW,
        {"batch": 64, "size": 224, "patch": 16, "width": 384, "layers": 12, "heads": 6},
        {"batch": 2, "size": 16, "patch": 8, "width": 16, "layers": 1, "heads": 2},
    ),
    "ConvNeXt-T, batch 32": Subject(
        _torchvision,
        ADAMW,
        {"name": "convnext_tiny", "batch": 32, "size": 224},
        {"name": "convnext_tiny", "batch": 2, "size": 32},
        package="torchvision",
    ),
    "ResNet-50, batch 32": Subject(
        _torchvision,
        MOMENTUM,
        {"name": "resnet50", "batch": 32, "size": 224},
        {"name": "resnet18", "batch": 2, "size": 32},
        package="torchvision",
    ),
    "U-Net, 8 x 256 x 256": Subject(
        _unet,
        ADAM,
        {"batch": 8, "size": 256, "widths": (32, 64, 128, 256)},
        {"batch": 2, "size": 16, "widths": (4, 8)},
    ),
    "diffusion U-Net, 16 x 64 x 64": Subject(
        _diffusion,
        ADAMW,
        {"batch": 16, "size": 64, "width": 128, "factors": (1, 2, 2, 4)},
        {"batch": 2, "size": 8, "width": 8, "factors": (1, 2)},
    ),
}
