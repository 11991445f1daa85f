"""Rotary position embedding."""

from __future__ import annotations

import torch
from torch import Tensor


class RotaryPosEmbeddingHelperV2:
    """The rotation of queries or keys by their positions, halves of the last dimension against each other."""

    @staticmethod
    def apply(states: Tensor, cos: Tensor, sin: Tensor, position_ids: Tensor) -> Tensor:
        """Rotate states of (batch, heads, length, size) by tables of (1, 1, positions, size)."""
        cos, sin = (table.reshape(-1, table.shape[-1])[position_ids].unsqueeze(1) for table in (cos, sin))
        first, second = states.chunk(2, dim=-1)
        return states * cos + torch.cat((-second, first), dim=-1) * sin
