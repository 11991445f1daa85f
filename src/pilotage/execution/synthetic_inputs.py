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
            self._made = [made_up(tensor, generator).to(device) for tensor in inputs]
        return self._made


def made_up(like: Tensor, generator: torch.Generator) -> Tensor:
    """Normal numbers on the host, or zeros: a valid class, index and mask in every model, as no other integer is."""
    made = torch.zeros_like(like, device="cpu")
    if not (like.is_floating_point() or like.is_complex()):
        return made
    kind = like.dtype if like.is_complex() else torch.float32
    return made.copy_(torch.randn(like.shape, generator=generator, dtype=kind))
