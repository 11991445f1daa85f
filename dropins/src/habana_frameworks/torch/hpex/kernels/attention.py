"""Attention."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from habana_frameworks.torch.hpex.kernels.written_attention import attention_weights
from habana_frameworks.torch.hpu.switches import recompute_sdp_enabled

_MODES = ("none", "fast")
_SIDES = ("left", "right")


class FusedSDPA:
    """torch's scaled dot product attention with the vendor's interface."""

    @staticmethod
    def apply(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        softmax_mode: str = "None",
        recompute_mode: bool | None = None,
        valid_seq_len: Tensor | None = None,
        seq_padding_type: str = "left",
        return_dropout_mask: bool = False,
        return_attn_probs: bool = False,
        /,
    ) -> Tensor | tuple[Tensor, ...]:
        """Compute attention. ``softmax_mode`` and ``recompute_mode`` affect only the card.

        ``valid_seq_len`` (one per sequence of the batch) masks the keys of padding, which is on one side. The last two
        arguments also return the attention weights (before dropout) and the mask of dropout.
        """
        trains = torch.is_grad_enabled() and any(each.requires_grad for each in (q, k, v))
        is_recomputed = recompute_sdp_enabled() if recompute_mode is None else recompute_mode
        mode, side = softmax_mode.lower(), seq_padding_type.lower()
        _check(mode in _MODES, f"softmax_mode is {softmax_mode!r}. Choose one of: 'none', 'fast'.")
        _check(side in _SIDES, f"seq_padding_type is {seq_padding_type!r}. Choose one of: 'left', 'right'.")
        if mode == "fast" and is_recomputed and trains:
            _check(is_causal, "softmax_mode 'fast' with recomputation trains causal attention only.")
        if return_attn_probs:
            _check(not trains, "return_attn_probs is for inference only.")
            is_recomputed = False
        if return_dropout_mask:
            _check(not is_recomputed, "return_dropout_mask does not go together with recomputation.")
        if valid_seq_len is not None:
            _check(
                is_causal and not trains and attn_mask is None,
                "valid_seq_len needs causal attention, inference and no attn_mask.",
            )
            attn_mask, is_causal = _seen(valid_seq_len, q, k, side), False
        if return_dropout_mask or return_attn_probs:
            k, v = _repeated(q, k), _repeated(q, v)
            weights = attention_weights(q, k, attn_mask, is_causal, scale)
            kept = torch.rand_like(weights) >= dropout_p
            out = (weights * kept / (1 - dropout_p) if dropout_p else weights) @ v
            return out, *([weights] if return_attn_probs else []), *([kept] if return_dropout_mask else [])
        return functional.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=attn_mask,
            dropout_p=dropout_p,
            is_causal=is_causal,
            scale=scale,
            enable_gqa=_shares_heads(q, k),
        )


def _check(is_right: bool, message: str) -> None:
    """Raise AssertionError, as the vendor's kernel does."""
    if not is_right:
        raise AssertionError(message)


def _shares_heads(q: Tensor, k: Tensor) -> bool:
    return q.dim() > 2 and q.shape[-3] != k.shape[-3]


def _repeated(q: Tensor, k: Tensor) -> Tensor:
    return k.repeat_interleave(q.shape[-3] // k.shape[-3], -3) if _shares_heads(q, k) else k


def _seen(lengths: Tensor, query: Tensor, key: Tensor, side: str) -> Tensor:
    """The keys that each query sees: no padding, and no later keys."""
    rows, columns = query.shape[-2], key.shape[-2]
    if lengths.shape != query.shape[:1]:
        raise ValueError(
            f"valid_seq_len has the shape {tuple(lengths.shape)} for a batch of {query.shape[0]}. Give one length per "
            "sequence."
        )
    position = torch.arange(columns, device=key.device)
    lengths = lengths.to(key.device)[:, None]
    filled = position >= columns - lengths if side == "left" else position < lengths
    earlier = torch.ones(rows, columns, dtype=torch.bool, device=key.device).tril()
    return filled[:, None, None, :].expand(-1, 1, rows, -1) & earlier
