"""Keeps padding out of the results of layers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["PostLayerMasker", "PreLayerMasker"]


class _Masker(nn.Module):
    """A layer, and a mask for its rows: the first argument that the masker is called with."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer


class PreLayerMasker(_Masker):
    """Sets the padded rows of a layer's input to zero."""

    def forward(self, mask: Tensor, x: Tensor, *args: Any) -> Any:
        """Call the layer on the real rows."""
        return self.layer(_masked(x, mask), *args)


class PostLayerMasker(_Masker):
    """Sets the padded rows of a layer's output to zero."""

    def forward(self, mask: Tensor, x: Tensor, *args: Any) -> Any:
        """Call the layer, and keep the real rows of its output."""
        return _masked(self.layer(x, *args), mask)


def _masked(x: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask.view(-1, *[1] * (x.dim() - 1)), x, torch.zeros_like(x))
