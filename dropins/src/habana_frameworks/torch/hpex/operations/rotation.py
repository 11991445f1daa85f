"""Rotary position embedding as operations; the sines come before the cosines."""

from __future__ import annotations

from torch import Tensor

from habana_frameworks.torch.hpex.kernels.rotary import RotaryPosEmbeddingMode, rotate
from habana_frameworks.torch.hpex.operations.registry import Operations

_ARGUMENTS = "Tensor sin, Tensor cos, Tensor? position_ids, int offset, int mode"


def rotary_pos_embedding(
    input: Tensor, sin: Tensor, cos: Tensor, position_ids: Tensor | None, offset: int, mode: int
) -> Tensor:
    """Rotate queries or keys."""
    return rotate(input, cos, sin, position_ids, offset, RotaryPosEmbeddingMode(mode))


def rotary_pos_embedding_backward(
    grad_in: Tensor, sin: Tensor, cos: Tensor, position_ids: Tensor | None, offset: int, mode: int
) -> Tensor:
    """Rotate gradients back, which is the transposed rotation."""
    kind = RotaryPosEmbeddingMode(mode)
    nothing = cos.new_zeros(cos.shape)
    by_cos = rotate(grad_in, cos, nothing, position_ids, offset, kind)
    by_sin = rotate(grad_in, sin, nothing, position_ids, offset, kind)
    ones = cos.new_ones(cos.shape)
    return by_cos - rotate(by_sin, nothing, ones, position_ids, offset, kind)


OPERATIONS: Operations = (
    (f"rotary_pos_embedding(Tensor input, {_ARGUMENTS}) -> Tensor", rotary_pos_embedding),
    (f"rotary_pos_embedding_backward(Tensor grad_in, {_ARGUMENTS}) -> Tensor", rotary_pos_embedding_backward),
)
