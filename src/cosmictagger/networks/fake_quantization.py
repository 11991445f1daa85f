"""Fake quantization to 8-bit integers, for quantization-aware training.

Weights are rounded to 255 levels around zero per channel; activations to 256 levels between the running minimum and
maximum. Gradients pass straight through.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

STEPS = 127
LEVELS = 255
MOMENTUM = 0.01
"""Momentum of the running range."""


class FakeQuantization(nn.Module):
    """Rounds the weights and the inputs of one convolution."""

    low: Tensor
    high: Tensor
    seen: Tensor

    def __init__(self) -> None:
        super().__init__()
        for name in ("low", "high", "seen"):
            self.register_buffer(name, torch.zeros(()))

    def weights(self, weight: Tensor, axis: int = 0) -> Tensor:
        """The weights rounded to 8 bits; ``axis`` is that of the output channels."""
        others = [each for each in range(weight.dim()) if each != axis]
        scale = weight.detach().abs().amax(others, keepdim=True).clamp(min=1e-8) / STEPS
        return _straight_through(weight, (weight.detach() / scale).round().clamp(-STEPS, STEPS) * scale)

    def values(self, x: Tensor) -> Tensor:
        """The values rounded to 8 bits."""
        if self.training:
            self._update_range(x.detach())
        low, high = self.low.clamp(max=0.0), self.high.clamp(min=0.0)
        scale = ((high - low) / LEVELS).clamp(min=1e-8)
        zero = (-low / scale).round()
        whole = ((x.detach().float() / scale).round() + zero).clamp(0, LEVELS)
        return _straight_through(x, ((whole - zero) * scale).to(x.dtype))

    def _update_range(self, x: Tensor) -> None:
        pace = torch.where(self.seen > 0, MOMENTUM, 1.0)
        with torch.no_grad():
            self.low.copy_(self.low + pace * (x.amin().to(self.low.dtype) - self.low))
            self.high.copy_(self.high + pace * (x.amax().to(self.high.dtype) - self.high))
            self.seen.fill_(1.0)


def _straight_through(x: Tensor, rounded: Tensor) -> Tensor:
    """The rounded values with a straight-through gradient."""
    return x + (rounded - x).detach()
