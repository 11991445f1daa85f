"""Normalisation by the root mean square, and softmax with the vendor's arguments."""

from __future__ import annotations

import torch
from torch import Tensor

from habana_frameworks.torch.hpex.operations.registry import Operations


def rms_norm(data_in: Tensor, gamma: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Normalise the last dimension; also return the inverse of the root mean square."""
    wide = data_in.float()
    inverse = (wide.pow(2).mean(-1, keepdim=True) + epsilon).rsqrt()
    return (wide * inverse).to(data_in.dtype) * gamma.to(data_in.dtype), inverse


def softmax_fp8(
    input: Tensor,
    dim: int,
    input_scale: Tensor | None = None,
    output_scale: Tensor | None = None,
    inv_attn_heads: Tensor | None = None,
    fused_add: Tensor | None = None,
) -> Tensor:
    """Softmax of the scaled input; float8 scales are refused."""
    if input_scale is not None or output_scale is not None:
        raise NotImplementedError("Softmax in float8 depends on the card's rounding. Give no scales.")
    data = input if inv_attn_heads is None else input * inv_attn_heads
    return torch.softmax(data if fused_add is None else data + fused_add, dim)


OPERATIONS: Operations = (
    ("rms_norm(Tensor data_in, Tensor gamma, float epsilon) -> (Tensor, Tensor)", rms_norm),
    ("rms_norm_fast(Tensor data_in, Tensor gamma, float epsilon) -> (Tensor, Tensor)", rms_norm),
    (
        "softmax_fp8(Tensor input, int dim, Tensor? input_scale=None, Tensor? output_scale=None, "
        "Tensor? inv_attn_heads=None, Tensor? fused_add=None) -> Tensor",
        softmax_fp8,
    ),
)
