"""Eight-bit integers, imitated: what quantization-aware training trains with.

Weights are rounded to 255 steps around zero, channel by channel; values to 256 steps between the smallest and the greatest
seen of late. Gradients pass as if nothing had been rounded.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

STEPS = 127
LEVELS = 255
MOMENTUM = 0.01
"""How fast the range of values follows what is seen."""


class FakeQuantization(nn.Module):
    """Rounds the weights of one convolution, and the values that it is given."""

    low: Tensor
    high: Tensor
    seen: Tensor

    def __init__(self) -> None:
        super().__init__()
        for name in ("low", "high", "seen"):
            self.register_buffer(name, torch.zeros(()))

    def weights(self, weight: Tensor, axis: int = 0) -> Tensor:
        """The nearest weights that eight bits can say; ``axis`` counts the channels that come out."""
        others = [each for each in range(weight.dim()) if each != axis]
        scale = weight.detach().abs().amax(others, keepdim=True).clamp(min=1e-8) / STEPS
        return _passed_through(weight, (weight.detach() / scale).round().clamp(-STEPS, STEPS) * scale)

    def values(self, x: Tensor) -> Tensor:
        """The nearest values that eight bits can say."""
        if self.training:
            self._follow(x.detach())
        low, high = self.low.clamp(max=0.0), self.high.clamp(min=0.0)
        scale = ((high - low) / LEVELS).clamp(min=1e-8)
        zero = (-low / scale).round()
        whole = ((x.detach().float() / scale).round() + zero).clamp(0, LEVELS)
        return _passed_through(x, ((whole - zero) * scale).to(x.dtype))

    def _follow(self, x: Tensor) -> None:
        pace = torch.where(self.seen > 0, MOMENTUM, 1.0)
        with torch.no_grad():
            self.low.copy_(self.low + pace * (x.amin().to(self.low.dtype) - self.low))
            self.high.copy_(self.high + pace * (x.amax().to(self.high.dtype) - self.high))
            self.seen.fill_(1.0)


def _passed_through(x: Tensor, rounded: Tensor) -> Tensor:
    """The rounded values, with the gradient of those before."""
    return x + (rounded - x).detach()
