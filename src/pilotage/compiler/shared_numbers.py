"""Numbers that many elements share are computed once. Runs in the compiling process alone: it teaches Inductor.

A learning rate over one minus a power of beta is a single number, but to the compiler it is arithmetic like any other: it would
be done again for each element of each parameter, three powers in double precision included.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.utils import _pytree as pytree

_ARITHMETIC = frozenset(
    {"add", "sub", "rsub", "mul", "div", "pow", "sqrt", "rsqrt", "reciprocal", "neg", "exp", "log", "clamp"}
    | {"clamp_min", "clamp_max", "minimum", "maximum", "where", "convert_element_type", "_to_copy"}
)

TO_MEMORY = "pilotage_to_memory"
"""What a node is marked with whose value goes to memory, however cheap it is to compute again."""

Lowering = Callable[..., Any]


@cache
def compute_shared_numbers_once() -> None:
    """Have a single number that larger tensors are computed with written to memory, in all that this process compiles."""
    from torch._inductor import lowering

    for operation, lower in list(lowering.lowerings.items()):
        if isinstance(operation, torch._ops.OpOverload) and operation._opname in _ARITHMETIC:
            lowering.lowerings[operation] = _written_if_shared(lower)


def _written_if_shared(lower: Lowering) -> Lowering:
    from torch._inductor.virtualized import V

    @wraps(lower)
    def lowered(*arguments: Any, **options: Any) -> Any:
        result = lower(*arguments, **options)
        node = V.graph.current_node
        if node.meta.get(TO_MEMORY) or is_shared(node):
            result.realize()
        return result

    return lowered


def is_shared(node: Node) -> bool:
    """Whether a value is one number, of which larger values are made."""
    value = node.meta.get("val")
    if not isinstance(value, Tensor) or value.dim() or not value.is_floating_point():
        return False
    return any(_elements(user) > 1 for user in node.users)


def _elements(node: Node) -> int:
    sizes = [each.numel() for each in pytree.tree_leaves(node.meta.get("val")) if isinstance(each, Tensor)]
    return max(sizes, default=0)
