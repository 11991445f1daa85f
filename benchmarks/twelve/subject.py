"""One model to measure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

MakeOptimizer = Callable[..., torch.optim.Optimizer]

ADAMW: MakeOptimizer = partial(torch.optim.AdamW, lr=1e-4)
ADAM: MakeOptimizer = partial(torch.optim.Adam, lr=1e-4)
SGD: MakeOptimizer = partial(torch.optim.SGD, lr=1e-3)
MOMENTUM: MakeOptimizer = partial(torch.optim.SGD, lr=1e-3, momentum=0.9)


@dataclass(frozen=True)
class Subject:
    """A model that returns its loss, its batch, and its optimizer."""

    make: Callable[..., tuple[nn.Module, tuple[Tensor, ...]]]
    """Makes the model and a batch; takes ``tiny`` sizes too."""

    optimizer: MakeOptimizer
    full: dict[str, Any]
    """The sizes of the measurement."""

    tiny: dict[str, Any]
    """Sizes for a test on a processor."""

    autocast: bool = True
    """Whether forward runs under autocast to bfloat16; otherwise in float32."""

    make_for_peers: Callable[..., tuple[nn.Module, tuple[Tensor, ...]]] | None = None
    """Makes the same model of torch's own operations, if ours has operators that torch.compile does not know."""

    package: str | None = None
    """A package that the model is from, which may be missing."""


class Autocast(nn.Module):
    """A model whose forward runs under autocast to bfloat16."""

    def __init__(self, model: nn.Module, device: str) -> None:
        super().__init__()
        self.model, self.device = model, device

    def forward(self, *batch: Tensor) -> Tensor:
        """The loss."""
        with torch.autocast(self.device, torch.bfloat16):
            loss: Tensor = self.model(*batch)
            return loss
