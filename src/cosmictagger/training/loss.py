"""The loss: cross entropy weighted by pixel, summed over the planes.

Each plane's loss is ``sum(w * cross_entropy) / sum(w)``, with weights that carry no gradient, so the gradient of the
scores is ``w / sum(w) * (softmax - one_hot)``. It is computed together with the loss, and nothing
else is saved for backward.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from cosmictagger.configuration.choices import LossBalanceScheme

LIGHT = (1.0, 1.5, 10.0)
"""Weights of background, cosmic and neutrino pixels in the scheme ``light``."""

EVEN = 0.3333
"""Share of each class in the scheme ``even``."""

PLANES = 3


class BalancedLoss(nn.Module):
    """The loss of stacked scores (3 N, 3 classes, H, W) against stacked labels (3 N, H, W)."""

    def __init__(self, scheme: LossBalanceScheme) -> None:
        super().__init__()
        self.scheme = scheme

    def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
        """The sum of the three planes' losses."""
        loss: Tensor = _BalancedCrossEntropy.apply(scores, labels, self.scheme)  # type: ignore[no-untyped-call]
        return loss


class _BalancedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, labels: Tensor, scheme: LossBalanceScheme) -> Tensor:
        """Compute the loss and its gradient."""
        logs = torch.log_softmax(scores.to(torch.promote_types(scores.dtype, torch.float32)), dim=1)
        probabilities = logs.exp()
        chosen = [labels == kind for kind in range(scores.shape[1])]
        entropy = -_picked(logs, chosen)
        weights = pixel_weights(scheme, probabilities, chosen)
        weights = weights / _per_plane(weights).sum(1).repeat_interleave(len(labels) // PLANES).view(-1, 1, 1)
        gradient = probabilities
        for kind, mask in enumerate(chosen):
            gradient[:, kind] -= mask.to(gradient.dtype)
        ctx.save_for_backward((gradient * weights.unsqueeze(1)).to(scores.dtype))
        return (weights * entropy).sum()

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None]:
        """Scale the saved gradient."""
        (gradient,) = ctx.saved_tensors
        return gradient * upstream.to(gradient.dtype), None, None


def pixel_weights(scheme: LossBalanceScheme, probabilities: Tensor, chosen: list[Tensor]) -> Tensor:
    """The weight of each pixel; ``chosen`` holds the mask of each class."""
    match scheme:
        case LossBalanceScheme.focal:
            return (1.0 - _picked(probabilities, chosen)).square()
        case LossBalanceScheme.light:
            # A mask times a number is float32, whatever the scores are.
            return _sum([mask.to(probabilities.dtype) * weight for mask, weight in zip(chosen, LIGHT, strict=True)])
        case LossBalanceScheme.even:
            return _sum([mask * _even(mask, probabilities.dtype) for mask in chosen])
        case LossBalanceScheme.none:
            return torch.ones_like(probabilities[:, 0])


def _even(mask: Tensor, kind: torch.dtype) -> Tensor:
    """The weight of each pixel of a class, by plane."""
    counts = _per_plane(mask).sum(1).to(kind)
    return (EVEN / (counts + 1.0)).repeat_interleave(len(mask) // PLANES).view(-1, 1, 1)


def _per_plane(values: Tensor) -> Tensor:
    return values.reshape(PLANES, -1)


def _picked(values: Tensor, chosen: list[Tensor]) -> Tensor:
    """The value of the labelled class of each pixel."""
    picked = values[:, 0]
    for kind, mask in enumerate(chosen[1:], start=1):
        picked = torch.where(mask, values[:, kind], picked)
    return picked


def _sum(parts: list[Tensor]) -> Tensor:
    """The sum of tensors."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
