"""Attention."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

_SIDES = ("left", "right")


class FusedSDPA:
    """torch's scaled dot product attention with the vendor's interface."""

    @staticmethod
    def apply(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        softmax_mode: str = "None",
        recompute: bool | None = None,
        valid_sequence_lengths: Tensor | None = None,
        padding_side: str = "left",
    ) -> Tensor:
        """Compute attention. ``softmax_mode`` and ``recompute`` affect only the card.

        ``valid_sequence_lengths`` (one per sequence of the batch) masks the keys of padding, which is on one side.
        """
        if softmax_mode not in ("None", "fast"):
            raise ValueError(f"softmax_mode is {softmax_mode!r}. Choose one of: 'None', 'fast'.")
        if padding_side not in _SIDES:
            raise ValueError(f"padding_side is {padding_side!r}. Choose one of: 'left', 'right'.")
        if valid_sequence_lengths is not None:
            seen = _seen(valid_sequence_lengths, query, key, padding_side, is_causal=is_causal)
            attn_mask, is_causal = _both(seen, attn_mask), False
        return functional.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=attn_mask,
            dropout_p=dropout_p,
            is_causal=is_causal,
            scale=scale,
            enable_gqa=query.shape[-3] != key.shape[-3],
        )


def _seen(lengths: Tensor, query: Tensor, key: Tensor, side: str, *, is_causal: bool) -> Tensor:
    """The keys that each query sees: no padding and, in causal attention, no later keys."""
    rows, columns = query.shape[-2], key.shape[-2]
    if lengths.shape != query.shape[:1]:
        raise ValueError(
            f"valid_sequence_lengths has the shape {tuple(lengths.shape)} for a batch of {query.shape[0]}. Give one "
            "length per sequence."
        )
    position = torch.arange(columns, device=key.device)
    lengths = lengths.to(key.device)[:, None]
    filled = position >= columns - lengths if side == "left" else position < lengths
    seen = filled[:, None, None, :].expand(-1, 1, rows, -1)
    return seen & torch.ones(rows, columns, dtype=torch.bool, device=key.device).tril() if is_causal else seen


def _both(seen: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return seen
    return seen & mask if mask.dtype == torch.bool else torch.where(seen, mask, float("-inf"))
