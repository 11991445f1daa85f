"""Attention."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


class FusedSDPA:
    """torch's scaled dot product attention under the name and in the form of the vendor's function."""

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
        """Attend. ``softmax_mode`` and ``recompute`` trade the card's precision and memory for speed, and change nothing here."""
        if softmax_mode not in ("None", "fast"):
            raise ValueError(f"softmax_mode is {softmax_mode!r}. Choose one of: 'None', 'fast'.")
        if valid_sequence_lengths is not None:
            raise NotImplementedError(
                "valid_sequence_lengths is not emulated. Give the padding as attn_mask, which has the same result."
            )
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
