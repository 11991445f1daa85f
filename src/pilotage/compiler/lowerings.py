"""Changes to Inductor's lowerings; used only in the compiling process.

Random numbers are drawn as in the graph. The compiler may reorder draws that do not depend on each other, and each
would get the numbers of another. It may also lay out a tensor differently: random numbers fill memory in order, so a
dropout mask would hit other values.

Scalars that many elements share are computed once. A learning rate divided by one minus a power of beta is a single
number, but Inductor would compute it again for each element of each parameter, three powers in double precision
included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.fx import Node

from pilotage.torch_private import OpOverload, OpOverloadPacket, operator_name, schema_of, tree_leaves

aten = torch.ops.aten

_ARITHMETIC = frozenset(
    {"add", "sub", "rsub", "mul", "div", "pow", "sqrt", "rsqrt", "reciprocal", "neg", "exp", "log", "clamp"}
    | {"clamp_min", "clamp_max", "minimum", "maximum", "where", "convert_element_type", "_to_copy"}
)

TO_MEMORY = "pilotage_to_memory"
"""The mark of a node whose value must be stored, even if it is cheap to recompute."""

Lowering = Callable[..., Any]


@cache
def keep_draws_of_the_graph() -> None:
    """Keep the order and memory layout of the graph's random draws in everything that this process compiles."""
    from pilotage.torch_private import InductorV, decompositions, lowering

    def drawn(_: Any, *chance: Any) -> Any:
        source: Any = InductorV.graph.current_node.args[0]
        like = source.meta["val"]
        place = lowering.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=like.device)
        return lowering.bernoulli_(place, *chance)

    lowering.register_lowering(aten.bernoulli.p, type_promotion_kind=None)(drawn)
    latest: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
    for operation in _draws():
        if operation not in lowering.lowerings and operation not in decompositions:
            lowering.make_fallback(operation, warn=False)
        if operation is not aten.bernoulli.p and lowering.maybe_layout_constraints(operation) is None:
            lowering.add_layout_constraint(operation, lowering.constrain_to_fx_strides)
        if operation in lowering.lowerings:
            lowering.lowerings[operation] = _ordered(lowering.lowerings[operation], latest)


def _draws() -> Iterator[OpOverload]:
    """Random operations that write to no argument."""
    for name in dir(aten):
        packet = getattr(aten, name)
        for overload in packet.overloads() if isinstance(packet, OpOverloadPacket) else ():
            operation = getattr(packet, overload)
            if torch.Tag.nondeterministic_seeded in operation.tags and not schema_of(operation).is_mutable:
                yield operation


def _ordered(lower: Lowering, latest: WeakKeyDictionary[Any, str]) -> Lowering:
    """The same lowering, ordered after the previous draw; ``latest`` holds the last draw of each graph."""
    from pilotage.torch_private import InductorV, inductor_ir

    @wraps(lower)
    def ordered(*arguments: Any, **options: Any) -> Any:
        graph = InductorV.graph
        before = len(graph.operations)
        result = lower(*arguments, **options)
        for operation in graph.operations[before:]:
            if isinstance(operation, inductor_ir.FallbackKernel | inductor_ir.InplaceBernoulliFallback):
                if graph in latest:
                    graph.additional_buffer_deps[str(operation.operation_name)].add(latest[graph])
                latest[graph] = operation.get_name()
        return result

    return ordered


@contextmanager
def scalars_computed_once(is_wanted: bool = True) -> Iterator[None]:
    """Store scalars that larger tensors are computed from, in everything that is compiled meanwhile."""
    _store_scalars()
    token = _SCALARS_ARE_STORED.set(is_wanted)
    try:
        yield
    finally:
        _SCALARS_ARE_STORED.reset(token)


_SCALARS_ARE_STORED: ContextVar[bool] = ContextVar("scalars are stored", default=False)


@cache
def _store_scalars() -> None:
    """Change Inductor's lowerings of arithmetic."""
    from pilotage.torch_private import lowering

    for operation, lower in list(lowering.lowerings.items()):
        if isinstance(operation, OpOverload) and operator_name(operation) in _ARITHMETIC:
            lowering.lowerings[operation] = _realized_if_shared(lower)


def _realized_if_shared(lower: Lowering) -> Lowering:
    from pilotage.torch_private import InductorV

    @wraps(lower)
    def lowered(*arguments: Any, **options: Any) -> Any:
        result = lower(*arguments, **options)
        node = InductorV.graph.current_node
        if node.meta.get(TO_MEMORY) or (_SCALARS_ARE_STORED.get() and is_shared_scalar(node)):
            result.realize()
        return result

    return lowered


def is_shared_scalar(node: Node) -> bool:
    """Whether a value is a scalar that larger values are computed from."""
    value = node.meta.get("val")
    if not isinstance(value, Tensor) or value.dim() or not value.is_floating_point():
        return False
    return any(_elements(user) > 1 for user in node.users)


def _elements(node: Node) -> int:
    sizes = [each.numel() for each in tree_leaves(node.meta.get("val")) if isinstance(each, Tensor)]
    return max(sizes, default=0)
