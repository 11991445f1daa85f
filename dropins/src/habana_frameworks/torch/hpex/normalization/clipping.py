"""Gradients clipped by the norm of all of them."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


class FusedClipNorm:
    """torch's ``clip_grad_norm_`` with the limit kept."""

    def __init__(self, parameters: Iterable[Tensor] | Tensor, max_norm: float) -> None:
        # The vendor's version makes room for these; here nothing is kept of them.
        del parameters
        self.max_norm = max_norm

    def clip_norm(self, parameters: Iterable[Tensor] | Tensor) -> Tensor:
        """Scale the gradients of parameters in place so that their norm does not pass the limit; return what it was."""
        return torch.nn.utils.clip_grad_norm_(parameters, self.max_norm)
