"""Starts the exchange of gradients between instances while backward still computes the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from torch.fx import GraphModule, Node

from pilotage.program.graphs.gradient_pools import ADD, Pool, pooling_of, pools_of, writers_of
from pilotage.program.graphs.rewrites import copy_graph
from pilotage.program.layout import StateLayout
from pilotage.program.program import Computation

__all__ = ["PART_BYTES", "Part", "with_early_exchange"]

PART_BYTES = 1 << 20
"""The smallest part to exchange on its own: it must be worth the latency of one more exchange."""

MOST_PARTS = 4

Part: TypeAlias = slice
"""A range of the flat buffer of all pooled gradients."""


def with_early_exchange(
    computation: Computation,
    graph: GraphModule,
    layout: StateLayout,
    begin: Callable[[Part], None],
    part_bytes: int = PART_BYTES,
) -> GraphModule | None:
    """The graph of a gradient step that calls ``begin`` for each part of the flat buffer as soon as it is complete.

    None if that would gain nothing, or if the way gradients are pooled does not allow it.
    """
    made = copy_graph(graph)
    pools = pools_of(computation, made, layout)
    parts = _parts(pools, layout, part_bytes)
    if parts and (writers := writers_of(pools)) is not None:
        # Even a single part pays: it is exchanged while the host finishes the step and prepares the next.
        _follow_writers(made, parts, writers, begin)
    elif len(parts) > 1 and (pooling := pooling_of(pools)) is not None:
        _add_parts(made, parts, pooling, begin)
    else:
        return None
    made.recompile()
    return made


def _follow_writers(
    made: GraphModule, parts: Sequence[_Portion], writers: Mapping[Node, Node], begin: Callable[[Part], None]
) -> None:
    """Begin a part after all its pools are written."""
    order = {node: number for number, node in enumerate(made.graph.nodes)}
    for part in parts:
        written = [writers[pool.node] for pool in part.pools if pool.node in writers]
        # A part without gradients is zero in all instances, but its sum is collective: all must begin it.
        complete = max(written or writers.values(), key=order.__getitem__)
        with made.graph.inserting_after(complete):
            made.graph.call_function(begin, (part.flat,))


def _add_parts(made: GraphModule, parts: Sequence[_Portion], pooling: Node, begin: Callable[[Part], None]) -> None:
    """Begin a part after its gradients are computed and added to its pools."""
    targets, additions = pooling.args
    addition_of: dict[Node, Node] = dict(zip(targets, additions, strict=True))  # type: ignore[arg-type]
    order = {node: number for number, node in enumerate(made.graph.nodes)}
    for part in parts:
        added = {pool.node: addition_of[pool.node] for pool in part.pools if pool.node in addition_of}
        # A part without gradients is zero in all instances, but its sum is collective: all must begin it.
        complete = max(added.values(), key=order.__getitem__, default=pooling)
        with made.graph.inserting_before(complete.next):
            if added:
                made.graph.call_function(ADD, (list(added), list(added.values())), dict(pooling.kwargs))
            made.graph.call_function(begin, (part.flat,))
    made.graph.erase_node(pooling)


@dataclass(frozen=True)
class _Portion:
    """Adjacent pools in the flat buffer, exchanged together."""

    pools: tuple[Pool, ...]

    @property
    def flat(self) -> Part:
        return slice(self.pools[0].start, self.pools[-1].stop)


def _parts(pools: Sequence[Pool], layout: StateLayout, part_bytes: int) -> list[_Portion]:
    """Parts of about the same size, from the end of the buffer: backward reaches the last layers first."""
    if layout.replica_groups or not pools:
        return []
    bytes_ = pools[-1].stop * layout.accumulation_type.itemsize
    return list(_portions(pools, min(MOST_PARTS, max(1, bytes_ // part_bytes))))


def _portions(pools: Sequence[Pool], count: int) -> Iterator[_Portion]:
    each = pools[-1].stop / count
    taken: list[Pool] = []
    for pool in reversed(pools):
        taken.insert(0, pool)
        if taken[-1].stop - pool.start >= each:
            yield _Portion(tuple(taken))
            taken = []
    if taken:
        yield _Portion(tuple(taken))
