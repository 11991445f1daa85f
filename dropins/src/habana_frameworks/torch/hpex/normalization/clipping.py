"""Gradient clipping by the total norm."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


class FusedClipNorm:
    """torch's ``clip_grad_norm_`` with a stored limit."""

    def __init__(self, parameters: Iterable[Tensor] | Tensor, max_norm: float) -> None:
        given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
        self.max_norm = float(max_norm)
        self.norm_type = 2.0
        self.dtype = given[0].dtype if given else torch.float32
        self.max_norm_t = torch.tensor(self.max_norm, device=given[0].device if given else "hpu")

    def clip_norm(self, parameters: Iterable[Tensor] | Tensor) -> Tensor:
        """Scale the gradients in place so that their norm is at most the limit; return the norm before."""
        given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
        if all(each.grad is None for each in given):
            return torch.tensor(0.0)
        return torch.nn.utils.clip_grad_norm_(given, self.max_norm)
