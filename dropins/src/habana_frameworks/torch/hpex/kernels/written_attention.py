"""Attention written as two products and a softmax."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def attention_weights(q: Tensor, k: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None) -> Tensor:
    """The softmax of the scaled and masked products of queries and keys."""
    scores = q @ k.mT * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if is_causal:
        rows, columns = scores.shape[-2:]
        later = torch.ones(rows, columns, dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1)


class PySDPA:
    """Attention as two products and a softmax; slices save memory on the card and change no results."""

    @staticmethod
    def apply(q: Tensor, k: Tensor, v: Tensor, is_causal: bool = False, with_slice: bool = False, /) -> Tensor:
        """Compute attention."""
        return attention_weights(q, k, None, is_causal, None) @ v


class PySDPAHinted(PySDPA):
    """PySDPA in slices."""

    apply: Callable[..., Any] = staticmethod(
        lambda q, k, v, is_causal=False, with_slice=True, /: PySDPA.apply(q, k, v, is_causal, with_slice)
    )
