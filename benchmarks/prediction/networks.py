"""Networks of the comparison between predicted and measured, written with torch only."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from pilotage.engine import enter_stage, keep_for_backward


class WithLoss(nn.Module):
    """A network and its loss."""

    def __init__(self, network: nn.Module, loss: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.loss = loss

    def forward(self, *tensors: Tensor) -> Tensor:
        """The loss against the last tensor."""
        *inputs, target = tensors
        return self.loss(self.network(*inputs).float(), target)


class FlatLoss(nn.Module):
    """Cross entropy over all positions of a sequence."""

    def forward(self, scores: Tensor, target: Tensor) -> Tensor:
        """The mean over positions."""
        return functional.cross_entropy(scores.flatten(0, -2), target.flatten())


class Residual(nn.Module):
    """A residual block of ResNet: two 3 x 3 convolutions, or a bottleneck."""

    def __init__(self, into: int, width: int, out: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        if bottleneck:
            shapes = [(into, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)]
        else:
            shapes = [(into, width, 3, stride), (width, out, 3, 1)]
        layers: list[nn.Module] = []
        for a, b, kernel, step in shapes:
            layers += [nn.Conv2d(a, b, kernel, step, kernel // 2, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True)]
        self.layers = nn.Sequential(*layers[:-1])
        same = into == out and stride == 1
        self.shortcut = (
            nn.Identity() if same else nn.Sequential(nn.Conv2d(into, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        )

    def forward(self, x: Tensor) -> Tensor:
        """The block."""
        return functional.relu(self.layers(x) + self.shortcut(x), inplace=True)


class ResNet(nn.Module):
    """ResNet-18 or ResNet-50, or another depth."""

    def __init__(self, blocks: tuple[int, ...], *, bottleneck: bool, classes: int = 1000, keeps: bool = False) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        )
        into, stages = 64, []
        for number, count in enumerate(blocks):
            width = 64 << number
            out = width * 4 if bottleneck else width
            for position in range(count):
                stride = 2 if number and not position else 1
                stages.append(Residual(into, width, out, stride, bottleneck))
                into = out
        self.blocks = nn.ModuleList(stages)
        self.head = nn.Linear(into, classes)
        self.keeps = keeps
        self.cuts: tuple[int, ...] = ()
        """The blocks that begin further stages."""

    def forward(self, x: Tensor) -> Tensor:
        """Scores of the classes."""
        if self.cuts:
            enter_stage(0)
        x = self.stem(x)
        for place, block in enumerate(self.blocks):
            if place in self.cuts:
                enter_stage(self.cuts.index(place) + 1)
            x = block(x)
            if self.keeps:
                keep_for_backward(x)
        return self.head(x.mean((2, 3)))


class Layer(nn.Module):
    """A layer of a transformer, normalised first."""

    def __init__(self, width: int, heads: int, *, causal: bool, dropout: float) -> None:
        super().__init__()
        self.heads, self.causal, self.dropout = heads, causal, dropout
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Attention and the two wide layers."""
        batch, length, width = x.shape
        q, k, v = self.into(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + functional.dropout(self.out(mixed.transpose(1, 2).reshape(batch, length, width)), self.dropout)
        return x + functional.dropout(self.narrow(functional.gelu(self.wide(self.norm2(x)))), self.dropout)


class Transformer(nn.Module):
    """An encoder, or with ``causal`` a decoder such as GPT-2, over tokens."""

    def __init__(
        self,
        layers: int,
        width: int,
        heads: int,
        vocabulary: int,
        length: int,
        *,
        causal: bool = False,
        dropout: float = 0.0,
        keeps: bool = False,
        stages: int = 1,
    ) -> None:
        super().__init__()
        self.stages = stages
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(Layer(width, heads, causal=causal, dropout=dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.keeps = keeps

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores of the next, or of the masked, token at every position."""
        if self.stages > 1:
            enter_stage(0)
        x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        for place, layer in enumerate(self.layers):
            if self.stages > 1:
                enter_stage(place * self.stages // len(self.layers))
            x = layer(x)
            if self.keeps:
                keep_for_backward(x)
        return self.head(self.norm(x))


class VisionTransformer(nn.Module):
    """ViT-S with patches of 16 x 16."""

    def __init__(self, layers: int = 12, width: int = 384, heads: int = 6) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.zeros(1, 197, width))
        self.layers = nn.Sequential(*(Layer(width, heads, causal=False, dropout=0.0) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, images: Tensor) -> Tensor:
        """Scores of the classes."""
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(len(x), -1, -1), x), 1) + self.places
        return self.head(self.norm(self.layers(x))[:, 0])


class Lstm(nn.Module):
    """A language model of two recurrent layers."""

    def __init__(self, vocabulary: int = 10000, width: int = 512) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, 2, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores of the next token."""
        return self.head(self.lstm(self.tokens(tokens))[0])


def mlp() -> nn.Module:
    """Three wide linear layers."""
    return nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10))


class Tutorial(nn.Module):
    """The tutorial's classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 5, 3), nn.Conv2d(5, 12, 5)
        self.norm = nn.GroupNorm(3, 12)
        self.fc1, self.fc2 = nn.Linear(972, 100), nn.Linear(100, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Log-probabilities of ten classes."""
        maps = functional.max_pool2d(functional.relu(self.conv1(images)), 2)
        maps = self.norm(functional.relu(self.conv2(maps)))
        return functional.log_softmax(self.fc2(functional.relu(self.fc1(maps.flatten(1)))), 1)


class Cosmic(nn.Module):
    """CosmicTagger's network with a plain loss."""

    def __init__(self, preset: str, dtype: torch.dtype) -> None:
        super().__init__()
        from cosmictagger.configuration.network import PRESETS
        from cosmictagger.networks.uresnet import build

        self.network = build(PRESETS[preset], dtype)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """The mean cross entropy over pixels of all planes."""
        planes = self.network(images)
        losses = [functional.cross_entropy(each.float(), labels[:, place]) for place, each in enumerate(planes)]
        return torch.stack(losses).sum()
