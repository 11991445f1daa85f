"""Networks of attention and of perceptrons on pictures."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from corpus.case import ADAMW, MOMENTUM, NADAM, Case, Classified, pictures

WIDTH, HEADS = 16, 2


class Attention(nn.Module):
    """Attention with queries, keys and values from one layer."""

    def __init__(self, width: int = WIDTH, heads: int = HEADS) -> None:
        super().__init__()
        self.heads = heads
        self.mixed, self.last = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """What each token reads from the others."""
        count, length, width = x.shape
        q, k, v = self.mixed(x).view(count, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        read = functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return self.last(read.transpose(1, 2).reshape(count, length, width))


def perceptron(width: int = WIDTH, inner: int = 2 * WIDTH) -> nn.Sequential:
    """Two layers with GELU between them."""
    return nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Dropout(0.1), nn.Linear(inner, width))


class Block(nn.Module):
    """Attention and a perceptron, each with its normalisation before it."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.perceptron = Attention(width), perceptron(width)

    def forward(self, x: Tensor) -> Tensor:
        """The block's result."""
        x = x + self.attention(self.first(x))
        return x + self.perceptron(self.second(x))


class Patches(nn.Module):
    """Pictures as tokens."""

    def __init__(self, width: int = WIDTH, patch: int = 4) -> None:
        super().__init__()
        self.projection = nn.Conv2d(3, width, patch, patch)

    def forward(self, x: Tensor) -> Tensor:
        """The tokens."""
        return self.projection(x).flatten(2).transpose(1, 2)


class VisionTransformer(nn.Module):
    """A vision transformer; DeiT has a second token, for the teacher."""

    def __init__(self, extra: int = 1) -> None:
        super().__init__()
        self.patches, self.block, self.norm = Patches(), Block(), nn.LayerNorm(WIDTH)
        self.tokens = nn.Parameter(torch.zeros(1, extra, WIDTH))
        self.positions = nn.Parameter(torch.randn(1, 16 + extra, WIDTH) * 0.02)
        self.heads = nn.ModuleList(nn.Linear(WIDTH, 5) for _ in range(extra))

    def forward(self, x: Tensor) -> Tensor:
        """The scores of the classes."""
        x = torch.cat([self.tokens.expand(len(x), -1, -1), self.patches(x)], 1) + self.positions
        x = self.norm(self.block(x))
        return sum(head(x[:, number]) for number, head in enumerate(self.heads)) / len(self.heads)


class ClassAttention(nn.Module):
    """CaiT: learned scales, heads that talk to each other, and a class token that reads all others."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.norm = Patches(), nn.LayerNorm(WIDTH)
        self.mixed = nn.Linear(WIDTH, 3 * WIDTH)
        self.before, self.after = nn.Linear(HEADS, HEADS), nn.Linear(HEADS, HEADS)
        self.scale = nn.Parameter(torch.full((WIDTH,), 1e-1))
        self.token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.query, self.pair, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, 5)

    def forward(self, x: Tensor) -> Tensor:
        """The scores of the classes."""
        x = self.patches(x)
        count, length, width = x.shape
        q, k, v = self.mixed(self.norm(x)).reshape(count, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        scores = self.before((q @ k.transpose(-2, -1)).permute(0, 2, 3, 1)).softmax(2)
        weights = self.after(scores).permute(0, 3, 1, 2)
        x = x + self.scale * (weights @ v).transpose(1, 2).reshape(count, length, width)
        token = self.token.expand(count, -1, -1)
        k, v = self.pair(torch.cat([token, x], 1)).chunk(2, -1)
        read = (self.query(token) @ k.transpose(1, 2) / width**0.5).softmax(-1) @ v
        return self.head(read[:, 0])


class Swin(nn.Module):
    """Attention in windows that are shifted, with a bias for relative positions, and merged patches."""

    def __init__(self, window: int = 4, shift: int = 2) -> None:
        super().__init__()
        self.window, self.shift = window, shift
        self.patches, self.attention, self.norm = nn.Conv2d(3, WIDTH, 2, 2), Attention(), nn.LayerNorm(WIDTH)
        self.perceptron = perceptron()
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, HEADS) * 0.02)
        places = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        relative = places[:, :, None] - places[:, None, :] + window - 1
        self.register_buffer("index", relative[0] * (2 * window - 1) + relative[1])
        self.merge, self.head = nn.Linear(4 * WIDTH, 2 * WIDTH, bias=False), nn.Linear(2 * WIDTH, 5)

    def forward(self, x: Tensor) -> Tensor:
        """The scores of the classes."""
        x = self.patches(x).permute(0, 2, 3, 1)
        count, height, width, channels = x.shape
        moved = torch.roll(self.norm(x), (-self.shift, -self.shift), (1, 2))
        parts = moved.view(count, height // self.window, self.window, width // self.window, self.window, channels)
        windows = parts.permute(0, 1, 3, 2, 4, 5).reshape(-1, self.window**2, channels)
        bias = self.table[self.index.flatten()].view(self.window**2, self.window**2, HEADS).permute(2, 0, 1)
        read = self.attention(windows, bias[None])
        parts = read.view(count, height // self.window, width // self.window, self.window, self.window, channels)
        joined = parts.permute(0, 1, 3, 2, 4, 5).reshape(count, height, width, channels)
        x = x + torch.roll(joined, (self.shift, self.shift), (1, 2))
        x = x + self.perceptron(x)
        four = [x[:, row::2, column::2] for row in (0, 1) for column in (0, 1)]
        return self.head(self.merge(torch.cat(four, -1)).mean((1, 2)))


class Mixer(nn.Module):
    """Perceptrons over places, then over channels."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.head = Patches(), nn.Linear(WIDTH, 5)
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.places, self.channels = perceptron(16, 8), perceptron()

    def forward(self, x: Tensor) -> Tensor:
        """The scores of the classes."""
        x = self.patches(x)
        x = x + self.places(self.first(x).transpose(1, 2)).transpose(1, 2)
        return self.head((x + self.channels(self.second(x))).mean(1))


class Gated(nn.Module):
    """gMLP: half of the channels gate the other half across places."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.wide, self.norm = Patches(), nn.Linear(WIDTH, 2 * WIDTH), nn.LayerNorm(WIDTH)
        self.places, self.head = nn.Linear(16, 16), nn.Linear(WIDTH, 5)

    def forward(self, x: Tensor) -> Tensor:
        """The scores of the classes."""
        one, other = functional.gelu(self.wide(self.patches(x))).chunk(2, -1)
        gate = self.places(self.norm(other).transpose(1, 2)).transpose(1, 2)
        return self.head((one * gate).mean(1))


class PoolFormer(nn.Module):
    """Pooling in place of attention."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.norm = nn.Conv2d(3, WIDTH, 4, 4), nn.GroupNorm(1, WIDTH)
        self.pool, self.perceptron = nn.AvgPool2d(3, 1, 1, count_include_pad=False), nn.Conv2d(WIDTH, WIDTH, 1)
        self.head = nn.Linear(WIDTH, 5)

    def forward(self, x: Tensor) -> Tensor:
        """The scores of the classes."""
        x = self.patches(x)
        y = self.norm(x)
        x = x + self.pool(y) - y
        return self.head((x + functional.gelu(self.perceptron(x))).mean((2, 3)))


class Masked(nn.Module):
    """A masked autoencoder: random patches are hidden, and their pixels predicted."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.block, self.last = Patches(), Block(), nn.Linear(WIDTH, 48)
        self.hidden = nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """The loss of the hidden patches."""
        found = self.patches(x)
        hide = torch.rand(found.shape[:2]).argsort(1) < 12
        read = self.block(torch.where(hide[..., None], self.hidden, found))
        target = functional.unfold(x, 4, stride=4).transpose(1, 2)
        lost = (self.last(read) - target).square().mean(-1)
        return (lost * hide).sum() / hide.sum()


ATTENTION = {
    "ViT": Case(lambda: Classified(VisionTransformer()), pictures, ADAMW),
    "DeiT": Case(lambda: Classified(VisionTransformer(2)), pictures, ADAMW),
    "CaiT": Case(lambda: Classified(ClassAttention()), pictures, ADAMW),
    "Swin": Case(lambda: Classified(Swin()), pictures, ADAMW),
    "MLP-Mixer": Case(lambda: Classified(Mixer()), pictures, MOMENTUM),
    "gMLP": Case(lambda: Classified(Gated()), pictures, NADAM),
    "PoolFormer": Case(lambda: Classified(PoolFormer()), pictures, ADAMW),
    "masked autoencoder": Case(Masked, lambda: pictures()[:1], ADAMW),
}
