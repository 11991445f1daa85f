"""One architecture with its data and its optimizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

Optimizer = Callable[[Any], torch.optim.Optimizer]

SGD: Optimizer = partial(torch.optim.SGD, lr=0.01)
MOMENTUM: Optimizer = partial(torch.optim.SGD, lr=0.01, momentum=0.9, nesterov=True, weight_decay=1e-4)
ADAM: Optimizer = partial(torch.optim.Adam, lr=1e-3, eps=1e-3)
ADAMW: Optimizer = partial(torch.optim.AdamW, lr=1e-3, eps=1e-3)
RMSPROP: Optimizer = partial(torch.optim.RMSprop, lr=1e-3, eps=1e-3, momentum=0.9)
ADAGRAD: Optimizer = partial(torch.optim.Adagrad, lr=1e-2, eps=1e-3)
ADAMAX: Optimizer = partial(torch.optim.Adamax, lr=1e-3, eps=1e-3)
NADAM: Optimizer = partial(torch.optim.NAdam, lr=1e-3, eps=1e-3)


@dataclass(frozen=True)
class Case:
    """One architecture: a module whose forward returns the loss."""

    make: Callable[[], nn.Module]
    inputs: Callable[[], Sequence[Tensor]]
    optimizer: Optimizer = MOMENTUM


class Classified(nn.Module):
    """A network with cross entropy as its loss."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor, classes: Tensor) -> Tensor:
        """The loss."""
        return functional.cross_entropy(self.network(x), classes)


class Head(nn.Sequential):
    """Mean over the image, and a linear layer."""

    def __init__(self, width: int, classes: int = 5) -> None:
        super().__init__(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


def pictures(count: int = 2, channels: int = 3, size: int = 16, classes: int = 5) -> list[Tensor]:
    """Pictures and their classes."""
    return [torch.randn(count, channels, size, size), torch.arange(count) % classes]


def tokens(count: int = 2, length: int = 8, words: int = 32) -> list[Tensor]:
    """Words, and those that follow them."""
    text = torch.randint(0, words, (count, length + 1))
    return [text[:, :-1].contiguous(), text[:, 1:].contiguous()]
