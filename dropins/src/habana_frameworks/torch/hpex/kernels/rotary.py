"""Rotary position embedding."""

from __future__ import annotations

from enum import IntEnum

import torch
from torch import Tensor


class RotaryPosEmbeddingMode(IntEnum):
    """Which features of a vector are rotated together."""

    BLOCKWISE = 0
    """Those of the first half with those of the second half."""
    PAIRWISE = 1
    """Each with its neighbour."""


def rotate(
    states: Tensor, cos: Tensor, sin: Tensor, position_ids: Tensor | None, offset: int, mode: RotaryPosEmbeddingMode
) -> Tensor:
    """Rotate states by tables of cosines and sines; gradients flow to the states only.

    With positions, tables of (positions, size) are read at them for states of (batch, heads, length, size); without,
    the tables are those of the states, from ``offset`` on if they are longer.
    """
    states, cos, sin = _of_one_type(states, cos.detach(), sin.detach())
    cos, sin = (_at(table, states, position_ids, offset) for table in (cos, sin))
    return states * cos + _turned(states, mode) * sin


def _of_one_type(states: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    is_single = any(each.dtype == torch.float32 for each in (states, cos, sin))
    kind = torch.float32 if is_single else states.dtype
    return states.to(kind), cos.to(kind), sin.to(kind)


def _at(table: Tensor, states: Tensor, position_ids: Tensor | None, offset: int) -> Tensor:
    if position_ids is not None:
        return table.reshape(-1, table.shape[-1])[position_ids].unsqueeze(1)
    length = states.shape[-2]
    is_longer = table.dim() > 1 and table.shape[-2] > length and table.shape[-2] >= offset + length
    return table[..., offset : offset + length, :] if is_longer else table


def _turned(states: Tensor, mode: RotaryPosEmbeddingMode) -> Tensor:
    """The states turned by a right angle."""
    if mode is RotaryPosEmbeddingMode.PAIRWISE:
        return torch.stack((-states[..., 1::2], states[..., 0::2]), dim=-1).flatten(-2)
    first, second = states.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def apply_rotary_pos_emb(
    p: Tensor,
    cos: Tensor,
    sin: Tensor | None = None,
    position_ids: Tensor | None = None,
    offset: int = 0,
    mode: RotaryPosEmbeddingMode = RotaryPosEmbeddingMode.BLOCKWISE,
    /,
) -> Tensor:
    """Rotate queries or keys by tables of cosines and sines, or by one cache of both."""
    if sin is None:
        return RotaryPosEmbeddingHelperV3.apply(p, cos)
    return rotate(p, cos, sin, position_ids, offset, RotaryPosEmbeddingMode(mode))


class RotaryPosEmbeddingHelperV1:
    """The rotation by consecutive positions, halves of the last dimension against each other."""

    @staticmethod
    def apply(p: Tensor, cos: Tensor, sin: Tensor, offset: int, /) -> Tensor:
        """Rotate states of (batch, heads, length, size) by the rows of both tables from ``offset`` on."""
        return rotate(p, cos, sin, None, offset, RotaryPosEmbeddingMode.BLOCKWISE)


class RotaryPosEmbeddingHelperV2:
    """The rotation of queries or keys by their positions, halves of the last dimension against each other."""

    @staticmethod
    def apply(p: Tensor, cos: Tensor, sin: Tensor, position_ids: Tensor | None, /) -> Tensor:
        """Rotate states of (batch, heads, length, size) by tables of (1, 1, positions, size)."""
        return rotate(p, cos, sin, position_ids, 0, RotaryPosEmbeddingMode.BLOCKWISE)


class RotaryPosEmbeddingHelperV3:
    """The rotation of neighbours by a cache of cosines and sines."""

    @staticmethod
    def apply(p: Tensor, rope_cache: Tensor, /) -> Tensor:
        """Rotate the first features of (length, batch, heads, size) by a cache of (length, batch, pairs, 2)."""
        pairs = rope_cache.shape[-2]
        if rope_cache.shape[-1] != 2 or 2 * pairs > p.shape[-1]:
            raise ValueError(
                f"The cache has the shape {tuple(rope_cache.shape)} for states of {p.shape[-1]} features. Its last "
                "dimensions must be (pairs, 2), for at most all features."
            )
        kind = torch.float32 if torch.float32 in (p.dtype, rope_cache.dtype) else p.dtype
        states, rest = p[..., : 2 * pairs].to(kind), p[..., 2 * pairs :].to(kind)
        cache = rope_cache.detach()[: p.shape[0]].to(kind).reshape(p.shape[0], -1, 1, pairs, 2)
        cos, sin = (cache[..., number].repeat_interleave(2, -1) for number in (0, 1))
        rotated = states * cos + _turned(states, RotaryPosEmbeddingMode.PAIRWISE) * sin
        return torch.cat((rotated, rest), dim=-1)
