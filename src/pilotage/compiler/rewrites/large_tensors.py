"""Takes large tensors and single numbers out of operations on lists.

Inductor compiles an operation on a list of tensors into one kernel. That saves launches for small tensors, but a large
one keeps a card busy by itself. Its own kernel gets its own block sizes, and may be fused with what computes the
gradient.

A parameter with a single number is taken out too. Inductor would compute a scalar that all parameters share, such as
the learning rate, together with the update of that parameter, in the kernel whose other blocks read the scalar.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from pilotage.compiler.rewrites.insertion import insert_call
from pilotage.torch_private import FOREACH_ADDCDIV, FOREACH_ADDCMUL, OpOverload, operator_name, overload_name

LARGE = 2**17
"""A tensor with at least this many elements gets its own kernel."""

_PREFIX = "_foreach_"
_SINGLE = {"List": "Tensor", "Tensor": "Tensor", "Scalar": "Scalar", "default": "default"}
"""The overload for one tensor, by the overload for lists."""

aten = torch.ops.aten
_WITH_SUM = {FOREACH_ADDCMUL: aten.mul.Tensor, FOREACH_ADDCDIV: aten.div.Tensor}
"""Operations that add a multiple of a term, with the operation of the term."""


def separate_large_tensors(graph: GraphModule) -> None:
    """Compute large results of operations on lists one by one, in a graph with shape metadata."""
    for node in list(graph.graph.nodes):
        if node.target in _WITH_SUM or _single(node) is not None:
            _separate(graph, node)


def _single(node: Node) -> Any:
    """The operation on one tensor for an operation on lists, if Inductor can lower it; otherwise None."""
    from pilotage.torch_private import lowering

    target = node.target
    if not isinstance(target, OpOverload) or not operator_name(target).startswith(_PREFIX):
        return None
    packet = getattr(aten, operator_name(target).removeprefix(_PREFIX), None)
    single = getattr(packet, _SINGLE.get(overload_name(target), ""), None)
    return single if single in lowering.lowerings else None


def _separate(graph: GraphModule, node: Node) -> None:
    values: Sequence[Tensor] = node.meta["val"]
    apart = [number for number, value in enumerate(values) if _belongs_apart(value, values)]
    small = [number for number in range(len(values)) if number not in apart]
    if not apart or any(user.target is not operator.getitem for user in node.users):
        return
    results: dict[int, Node] = {}
    with graph.graph.inserting_before(node):
        for number in apart:
            arguments = _each(node.args, number)
            if node.target in _WITH_SUM:
                target, left, right, *factor = arguments
                term = insert_call(graph, _WITH_SUM[node.target], left, right)
                results[number] = insert_call(graph, aten.add.Tensor, target, term, alpha=factor[0] if factor else 1)
            else:
                results[number] = insert_call(graph, _single(node), *arguments, **node.kwargs)
        if small:
            rest = insert_call(graph, node.target, *_some(node.args, small), **node.kwargs)
            for place, number in enumerate(small):
                results[number] = insert_call(graph, operator.getitem, rest, place)
    for user in list(node.users):
        wanted = user.args[1]
        assert isinstance(wanted, int)
        user.replace_all_uses_with(results[wanted])
        graph.graph.erase_node(user)
    graph.graph.erase_node(node)


def _belongs_apart(value: Tensor, values: Sequence[Tensor]) -> bool:
    if value.numel() == 1:
        return any(other.numel() > 1 for other in values)
    return value.numel() >= LARGE


def _each(arguments: Sequence[Any], number: int) -> tuple[Any, ...]:
    return tuple(each[number] if isinstance(each, list | tuple) else each for each in arguments)


def _some(arguments: Sequence[Any], numbers: Sequence[int]) -> tuple[Any, ...]:
    return tuple([each[n] for n in numbers] if isinstance(each, list | tuple) else each for each in arguments)
