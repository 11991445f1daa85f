"""The training programs that are predicted and measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.prediction import networks

Made = tuple[nn.Module, list[Tensor], torch.optim.Optimizer]


@dataclass(frozen=True, kw_only=True)
class TrainingProgram:
    """One program: how to make it, and its options for `pilotage.training`."""

    name: str
    make: Callable[[], Made]
    """The module with its loss, the inputs of one micro-batch, and the optimizer."""

    options: dict[str, Any] = field(default_factory=dict)
    autocast: bool = False
    """Capture under bfloat16 autocast."""

    @property
    def micro_batches(self) -> int:
        """How many micro-batches one call takes."""
        options = self.options
        return int(options.get("gradient_accumulation", 1)) * int(options.get("device_iterations", 1))

    def inputs(self, micro_batch: list[Tensor]) -> list[Tensor]:
        """The inputs of one call."""
        return [torch.cat([tensor] * self.micro_batches) for tensor in micro_batch]


def programs(*, tiny: bool = False) -> Iterator[TrainingProgram]:
    """All programs, the plain ones first; tiny ones are for trying the comparison without a card."""
    t = tiny
    makers: dict[str, Callable[[torch.dtype], Made]] = {
        "tutorial, batch 16": lambda d: _tutorial(16, d),
        "MLP, batch 256": lambda d: _mlp(8 if t else 256, d),
        "ResNet-18, batch 32": lambda d: _resnet(18, 1 if t else 32, 32 if t else 224, d),
        "ResNet-50, batch 32": lambda d: _resnet(50, 1 if t else 32, 32 if t else 224, d),
        "small encoder, batch 32 x 128": lambda d: _encoder(1 if t else 4, 64 if t else 256, 4, 2 if t else 32, 128, d),
        "large encoder, batch 8 x 512": lambda d: _encoder(
            1 if t else 24, 64 if t else 1024, 4 if t else 16, 1 if t else 8, 64 if t else 512, d
        ),
        "GPT-2 small, batch 4 x 1024": lambda d: _gpt(
            1 if t else 12, 64 if t else 768, 4 if t else 12, 1 if t else 4, d
        ),
        "ViT-S, batch 32": lambda d: _vit(1 if t else 12, 1 if t else 32, d),
        "LSTM, batch 64 x 64": lambda d: _lstm(2 if t else 64, 4 if t else 64, d),
        "A21, batch 2, 640 x 1024": lambda d: _cosmic("a21", 1 if t else 2, 64 if t else 640, 64 if t else 1024, d),
        "A21, batch 2, 320 x 512": lambda d: _cosmic("a21", 1 if t else 2, 64 if t else 320, 64 if t else 512, d),
        "uresnet, batch 2, 320 x 512": lambda d: _cosmic(
            "uresnet", 1 if t else 2, 64 if t else 320, 64 if t else 512, d
        ),
        "uresnet, batch 1, 640 x 1024": lambda d: _cosmic("uresnet", 1, 64 if t else 640, 64 if t else 1024, d),
    }
    for name, make in makers.items():
        for words, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
            yield TrainingProgram(name=f"{name}, {words}", make=lambda make=make, dtype=dtype: make(dtype))
    half = torch.bfloat16
    yield TrainingProgram(
        name="large encoder, batch 8 x 512, bfloat16, recomputation",
        make=lambda: _encoder(
            2 if t else 24, 64 if t else 1024, 4 if t else 16, 1 if t else 8, 64 if t else 512, half, keeps=True
        ),
    )
    yield TrainingProgram(
        name="ResNet-50, batch 32, float32, recomputation",
        make=lambda: _resnet(50, 1 if t else 32, 32 if t else 224, torch.float32, keeps=True),
    )
    yield TrainingProgram(
        name="GPT-2 small, batch 4 x 1024, float32, recomputation",
        make=lambda: _gpt(2 if t else 12, 64 if t else 768, 4 if t else 12, 1 if t else 4, torch.float32, keeps=True),
    )
    accumulation = {"gradient_accumulation": 4}
    for name in (
        "ResNet-50, batch 32",
        "GPT-2 small, batch 4 x 1024",
        "small encoder, batch 32 x 128",
        "MLP, batch 256",
    ):
        yield TrainingProgram(
            name=f"{name}, float32, accumulation 4",
            make=lambda name=name: makers[name](torch.float32),
            options=accumulation,
        )
    yield TrainingProgram(
        name="large encoder, batch 8 x 512, bfloat16, accumulation 4",
        make=lambda: makers["large encoder, batch 8 x 512"](half),
        options=accumulation,
    )
    yield TrainingProgram(
        name="tutorial, batch 16, float32, 10 device iterations",
        make=lambda: _tutorial(16, torch.float32),
        options={"device_iterations": 10},
    )
    yield TrainingProgram(
        name="ViT-S, batch 32, float32, autocast", make=lambda: makers["ViT-S, batch 32"](torch.float32), autocast=True
    )


def _sgd(module: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(module.parameters(), lr=1e-3, momentum=0.9)


def _adamw(module: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(module.parameters(), lr=1e-4)


def _images(batch: int, size: int, dtype: torch.dtype, channels: int = 3, classes: int = 1000) -> list[Tensor]:
    return [torch.randn(batch, channels, size, size, dtype=dtype), torch.randint(0, classes, (batch,))]


def _tutorial(batch: int, dtype: torch.dtype) -> Made:
    module = networks.WithLoss(networks.Tutorial().to(dtype), nn.NLLLoss())
    return module, _images(batch, 28, dtype, 1, 10), _sgd(module)


def _mlp(batch: int, dtype: torch.dtype) -> Made:
    module = networks.WithLoss(networks.mlp().to(dtype), nn.CrossEntropyLoss())
    return module, [torch.randn(batch, 1024, dtype=dtype), torch.randint(0, 10, (batch,))], _adamw(module)


def _resnet(depth: int, batch: int, size: int, dtype: torch.dtype, *, keeps: bool = False) -> Made:
    blocks = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}[depth]
    network = networks.ResNet(blocks, bottleneck=depth > 34, keeps=keeps).to(dtype)
    module = networks.WithLoss(network, nn.CrossEntropyLoss())
    return module, _images(batch, size, dtype), _sgd(module)


def _encoder(
    layers: int, width: int, heads: int, batch: int, length: int, dtype: torch.dtype, *, keeps: bool = False
) -> Made:
    network = networks.Transformer(layers, width, heads, 30522, length, dropout=0.1, keeps=keeps).to(dtype)
    return _over_tokens(network, 30522, batch, length)


def _gpt(layers: int, width: int, heads: int, batch: int, dtype: torch.dtype, *, keeps: bool = False) -> Made:
    network = networks.Transformer(layers, width, heads, 50257, 1024, causal=True, keeps=keeps).to(dtype)
    return _over_tokens(network, 50257, batch, 1024)


def _over_tokens(network: nn.Module, vocabulary: int, batch: int, length: int) -> Made:
    module = networks.WithLoss(network, networks.FlatLoss())
    tokens = torch.randint(0, vocabulary, (batch, length))
    return module, [tokens, tokens], _adamw(module)


def _vit(layers: int, batch: int, dtype: torch.dtype) -> Made:
    module = networks.WithLoss(networks.VisionTransformer(layers).to(dtype), nn.CrossEntropyLoss())
    return module, _images(batch, 224, dtype), _adamw(module)


def _lstm(batch: int, length: int, dtype: torch.dtype) -> Made:
    return _over_tokens(networks.Lstm().to(dtype), 10000, batch, length)


def _cosmic(preset: str, batch: int, height: int, width: int, dtype: torch.dtype) -> Made:
    module = networks.Cosmic(preset, dtype)
    images = torch.rand(batch, 3, height, width)
    labels = torch.randint(0, 3, (batch, 3, height, width))
    return module, [images, labels], torch.optim.Adam(module.parameters(), lr=3e-4)
