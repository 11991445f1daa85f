"""Multiplies 16-bit numbers directly where a graph widens them to float32 first.

Under autocast, attention with a bias that is trained computes in float32, without matrix units, although its queries,
keys and values have 16 bits. The product of two such numbers is exact in float32, so batched products of widened
tensors are computed from the narrow ones and summed in float32, as before. Constant factors multiply the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node

from pilotage.compiler.rewrites.insertion import insert_call
from pilotage.torch_private import UNSAFE_VIEW

aten = torch.ops.aten
prims = torch.ops.prims

_NARROW = frozenset({torch.bfloat16, torch.float16})
_MOVES = frozenset(
    {
        aten.view.default,
        aten.reshape.default,
        UNSAFE_VIEW,
        aten.expand.default,
        aten.permute.default,
        aten.transpose.int,
        aten.clone.default,
    }
)
"""Operations that move values and change none."""


@dataclass(frozen=True)
class _Widened:
    """A tensor that was made from a narrow one."""

    narrow: Node
    factor: float
    moves: tuple[Node, ...]
    """What moved its values after they were widened, the first one first."""


def multiply_narrow_numbers(graph: GraphModule) -> None:
    """Rewrite batched products of widened tensors, in a graph with shape metadata."""
    from pilotage.torch_private import lowering

    if aten.bmm.dtype not in lowering.lowerings:
        return
    for node in list(graph.graph.nodes):
        if node.target is not aten.bmm.default or node.meta["val"].dtype != torch.float32:
            continue
        left, right = (_widened(each) for each in node.args)
        if left is None or right is None or left.narrow.meta["val"].dtype != right.narrow.meta["val"].dtype:
            continue
        with graph.graph.inserting_before(node):
            parts = [_moved(graph, each) for each in (left, right)]
            product = insert_call(graph, aten.bmm.dtype, *parts, torch.float32)
            factor = left.factor * right.factor
            result = product if factor == 1 else insert_call(graph, aten.mul.Tensor, product, factor)
        node.replace_all_uses_with(result)
        graph.graph.erase_node(node)
    graph.graph.eliminate_dead_code()


def _widened(node: Any) -> _Widened | None:
    """How a tensor was made from a narrow one; None if it was not."""
    moves: list[Node] = []
    factor = 1.0
    while True:
        if node.target in _MOVES:
            moves.append(node)
        elif node.target is aten.mul.Tensor and isinstance(node.args[1], float) and math.isfinite(node.args[1]):
            factor *= node.args[1]
        elif node.target is prims.convert_element_type.default:
            narrow = node.args[0]
            if narrow.meta["val"].dtype in _NARROW and node.args[1] == torch.float32:
                return _Widened(narrow, factor, tuple(reversed(moves)))
            return None
        else:
            return None
        node = node.args[0]


def _moved(graph: GraphModule, widened: _Widened) -> Node:
    """The narrow tensor, moved in the same way."""
    result = widened.narrow
    for move in widened.moves:
        result = insert_call(graph, move.target, result, *move.args[1:], **move.kwargs)
    return result
