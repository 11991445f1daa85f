"""Gradient clipping by the total norm."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


class FusedClipNorm:
    """torch's ``clip_grad_norm_`` with a stored limit."""

    def __init__(self, parameters: Iterable[Tensor] | Tensor, max_norm: float) -> None:
        # The vendor's version allocates buffers for these; none are needed here.
        del parameters
        self.max_norm = max_norm

    def clip_norm(self, parameters: Iterable[Tensor] | Tensor) -> Tensor:
        """Scale the gradients in place so that their norm is at most the limit; return the norm before."""
        return torch.nn.utils.clip_grad_norm_(parameters, self.max_norm)
