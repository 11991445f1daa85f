"""Random numbers that are drawn as in the graph. Runs in the compiling process alone: it teaches Inductor.

Draws that need nothing of each other may be put in another order by the compiler, and each of them would get the numbers of
another one. And random numbers fill memory in its own order: in a tensor that is laid out otherwise, a mask of dropout would hit
other values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, wraps
from typing import Any
from weakref import WeakKeyDictionary

import torch

aten = torch.ops.aten

Lowering = Callable[..., Any]


@cache
def draw_as_the_graph_does() -> None:
    """Keep the order of draws, and draw into memory that is laid out as in the graph, in all that this process compiles."""
    from torch._inductor import lowering
    from torch._inductor.decomposition import decompositions
    from torch._inductor.virtualized import V

    def drawn(_: Any, *chance: Any) -> Any:
        source: Any = V.graph.current_node.args[0]
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
            lowering.lowerings[operation] = _in_order(lowering.lowerings[operation], latest)


def _draws() -> Iterator[torch._ops.OpOverload]:
    """Operations that draw random numbers and change nothing else."""
    for name in dir(aten):
        packet = getattr(aten, name)
        for overload in packet.overloads() if isinstance(packet, torch._ops.OpOverloadPacket) else ():
            operation = getattr(packet, overload)
            if torch.Tag.nondeterministic_seeded in operation.tags and not operation._schema.is_mutable:
                yield operation


def _in_order(lower: Lowering, latest: WeakKeyDictionary[Any, str]) -> Lowering:
    """The same, behind the draw before it; ``latest`` has the last draw of each graph that is being compiled."""
    from torch._inductor import ir
    from torch._inductor.virtualized import V

    @wraps(lower)
    def ordered(*arguments: Any, **options: Any) -> Any:
        graph = V.graph
        before = len(graph.operations)
        result = lower(*arguments, **options)
        for operation in graph.operations[before:]:
            if isinstance(operation, ir.FallbackKernel | ir.InplaceBernoulliFallback):
                if graph in latest:
                    graph.additional_buffer_deps[str(operation.operation_name)].add(latest[graph])
                latest[graph] = operation.get_name()
        return result

    return ordered
