"""Casts and products of float8 numbers, in torch's float8 types."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from habana_frameworks.torch.hpex.operations.registry import Operations

_TYPES = (torch.float8_e4m3fn, torch.float8_e5m2)


def cast_to_fp8_v2(
    input: Tensor,
    scale: Tensor | None = None,
    stochastic_rounding: bool = False,
    is_amax: bool = False,
    dtype: torch.dtype | None = None,
    scale_shape: Sequence[int] | None = None,
) -> tuple[Tensor, Tensor]:
    """Multiply by the scale and round to float8, too large values to the largest; also return the largest absolute."""
    if stochastic_rounding:
        raise NotImplementedError("Stochastic rounding is the card's own. Use stochastic_rounding=False.")
    if dtype not in _TYPES:
        raise ValueError(f"dtype is {dtype}. Choose one of: {', '.join(map(str, _TYPES))}.")
    scaled = input.float() if scale is None else input.float() * _shaped(scale, scale_shape)
    largest = torch.finfo(dtype).max
    amax = input.abs().max().float() if is_amax else torch.zeros((), device=input.device)
    return scaled.clamp(-largest, largest).to(dtype), amax


def cast_from_fp8(
    input: Tensor, scale: Tensor | None, out_dtype: torch.dtype, scale_shape: Sequence[int] | None = None
) -> Tensor:
    """Multiply float8 numbers by the scale, in another type."""
    wide = input.float() if scale is None else input.float() * _shaped(scale, scale_shape)
    return wide.to(out_dtype)


def fp8_gemm_v2(
    A: Tensor,
    trans_A: bool,
    B: Tensor,
    trans_B: bool,
    D: Tensor | None,
    out_dtype: torch.dtype,
    A_scale_inv: Tensor | None = None,
    B_scale_inv: Tensor | None = None,
    bias: Tensor | None = None,
    accumulate: bool = False,
    B_scale_shape: Sequence[int] | None = None,
) -> Tensor:
    """The product of two scaled matrices, computed in float32 and rounded once."""
    left, right = _scaled(A, A_scale_inv, None), _scaled(B, B_scale_inv, B_scale_shape)
    result = (left.mT if trans_A else left) @ (right.mT if trans_B else right)
    if bias is not None:
        result = result + bias.float()
    if accumulate:
        if D is None:
            raise ValueError("accumulate=True needs D, the matrix to add to.")
        result = result + D.float()
    return result.to(out_dtype)


def _scaled(matrix: Tensor, scale: Tensor | None, shape: Sequence[int] | None) -> Tensor:
    wide = matrix.float()
    if scale is None:
        return wide
    scale = _shaped(scale, shape)
    if scale.dim() == 2 and all(1 < count < size for count, size in zip(scale.shape, wide.shape[-2:], strict=True)):
        # One scale for each block.
        rows, columns = (-(-size // count) for size, count in zip(wide.shape[-2:], scale.shape, strict=True))
        scale = scale.repeat_interleave(rows, 0)[: wide.shape[-2]]
        scale = scale.repeat_interleave(columns, 1)[:, : wide.shape[-1]]
    return wide * scale


def _shaped(scale: Tensor, shape: Sequence[int] | None) -> Tensor:
    return scale.float() if shape is None else scale.float().reshape(tuple(shape))


OPERATIONS: Operations = (
    (
        "cast_to_fp8_v2(Tensor input, Tensor? scale=None, bool stochastic_rounding=False, bool is_amax=False, "
        "ScalarType? dtype=None, int[]? scale_shape=None) -> (Tensor, Tensor)",
        cast_to_fp8_v2,
    ),
    (
        "cast_from_fp8(Tensor input, Tensor? scale, ScalarType out_dtype, int[]? scale_shape=None) -> Tensor",
        cast_from_fp8,
    ),
    (
        "fp8_gemm_v2(Tensor A, bool trans_A, Tensor B, bool trans_B, Tensor? D, ScalarType out_dtype, "
        "Tensor? A_scale_inv=None, Tensor? B_scale_inv=None, Tensor? bias=None, bool accumulate=False, "
        "int[]? B_scale_shape=None) -> Tensor",
        fp8_gemm_v2,
    ),
)
