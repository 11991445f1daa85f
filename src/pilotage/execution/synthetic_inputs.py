"""Synthetic inputs, to measure a program without the host's transfers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class SyntheticInputs:
    """Generates inputs at the first call and returns the same ones at all later calls."""

    def __init__(self) -> None:
        self._made: list[Tensor] | None = None

    def instead_of(self, inputs: Sequence[Tensor], device: torch.device) -> list[Tensor]:
        """Tensors on the device of the same shapes and types: normal numbers, and zeros for integers."""
        if self._made is None:
            # A separate generator: the model draws the same numbers as with real data.
            generator = torch.Generator().manual_seed(0)
            self._made = [_made_up(tensor, generator).to(device) for tensor in inputs]
        return self._made


def _made_up(like: Tensor, generator: torch.Generator) -> Tensor:
    """Zero is a valid class, index and mask in every model; another integer may not be."""
    if not (like.is_floating_point() or like.is_complex()):
        return torch.zeros(like.shape, dtype=like.dtype)
    kind = like.dtype if like.is_complex() else torch.float32
    return torch.randn(like.shape, generator=generator, dtype=kind).to(like.dtype)
