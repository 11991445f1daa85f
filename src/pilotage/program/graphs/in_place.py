"""Operations that may overwrite their argument: the memory is fresh, and nothing else needs what is in it."""

from __future__ import annotations

import operator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.fx import Node

from pilotage.torch_private import OpOverload

aten = torch.ops.aten

_FRESH = frozenset(
    {
        aten.convolution.default,
        aten.addmm.default,
        aten.mm.default,
        aten.bmm.default,
        aten.add.Tensor,
        aten.mul.Tensor,
        aten.threshold_backward.default,
        aten.max_pool2d_with_indices_backward.default,
        aten.avg_pool2d_backward.default,
    }
)
"""Operations whose result always has memory of its own."""

_FRESH_FIRST = frozenset(
    {
        aten.convolution_backward.default,
        aten.max_pool2d_with_indices.default,
        aten.native_batch_norm.default,
        aten.native_batch_norm_backward.default,
        aten.native_group_norm.default,
        aten.native_group_norm_backward.default,
        aten.native_layer_norm.default,
        aten.native_layer_norm_backward.default,
    }
)
"""Operations with several results, of which the first always has memory of its own."""


class InPlace(NamedTuple):
    """How to compute an operation in the memory of one of its arguments."""

    operation: OpOverload
    overwritten: Node
    keyword: str | None = None
    """The name under which the overwritten argument is passed once more; None where writing to the first is implied."""


def in_place(node: Node) -> InPlace | None:
    """The operation that computes the same bits in the memory of an argument; None if it must not be overwritten."""
    first = node.args[0] if node.args else None
    if not isinstance(first, Node) or not _is_unneeded(first, node):
        return None
    if node.target is aten.relu.default:
        return InPlace(aten.relu_.default, first)
    if node.target is aten.threshold_backward.default and _is_alike(first, node):
        return InPlace(aten.threshold_backward.grad_input, first, keyword="grad_input")
    if node.target is aten.add.Tensor and _is_alike(first, node):
        return InPlace(aten.add_.Tensor, first)
    return None


def _is_unneeded(value: Node, user: Node) -> bool:
    if list(value.users) != [user]:
        return False
    if value.target is operator.getitem:
        source, position = value.args
        return isinstance(source, Node) and source.target in _FRESH_FIRST and bool(position == 0)
    return value.target in _FRESH


def _is_alike(value: Node, result: Node) -> bool:
    """Whether two values have the same shape, type and layout; False if that is not known."""
    one, other = value.meta.get("val"), result.meta.get("val")
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return False
    return (one.shape, one.dtype, one.stride()) == (other.shape, other.dtype, other.stride())
