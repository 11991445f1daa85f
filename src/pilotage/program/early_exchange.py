"""Gradients that are on their way to other instances while backward still computes the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch.fx import GraphModule, Node

from pilotage.program.layout import Section, StateLayout
from pilotage.program.program import Computation
from pilotage.program.rewrites import copied

__all__ = ["PART_BYTES", "Part", "with_early_exchange"]

PART_BYTES = 1 << 20
"""The smallest part that is sent by itself: the latency of one more exchange has to be worth it."""

MOST_PARTS = 4

_ADD = torch.ops.aten._foreach_add_.List

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

    None where that would gain nothing, or where gradients are pooled in a way that does not allow it.
    """
    made = copied(graph)
    pools = _pools(computation, made, layout)
    parts = _parts(pools, layout, part_bytes)
    pooling = _pooling(pools)
    if len(parts) < 2 or pooling is None:
        return None
    targets, additions = pooling.args
    addition_of: dict[Node, Node] = dict(zip(targets, additions, strict=True))  # type: ignore[arg-type]
    order = {node: number for number, node in enumerate(made.graph.nodes)}
    for part in parts:
        added = {pool.node: addition_of[pool.node] for pool in part.pools if pool.node in addition_of}
        # A part that gets no gradient is zero in all instances, but its sum has to be begun by all of them alike.
        complete = max(added.values(), key=order.__getitem__, default=pooling)
        with made.graph.inserting_before(complete.next):
            if added:
                made.graph.call_function(_ADD, (list(added), list(added.values())), dict(pooling.kwargs))
            made.graph.call_function(begin, (part.flat,))
    made.graph.erase_node(pooling)
    made.recompile()
    return made


@dataclass(frozen=True)
class _Pool:
    """The pooled gradients of one parameter."""

    node: Node
    start: int
    stop: int


@dataclass(frozen=True)
class _Portion:
    """Neighbours in the flat buffer, which travel together."""

    pools: tuple[_Pool, ...]

    @property
    def flat(self) -> Part:
        return slice(self.pools[0].start, self.pools[-1].stop)


def _pools(computation: Computation, graph: GraphModule, layout: StateLayout) -> list[_Pool]:
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    first = 0
    for section in computation.sections:
        if section is Section.GRADIENTS:
            break
        first += len(layout.section(section))
    pools, start = [], 0
    for number, piece in enumerate(layout.section(Section.GRADIENTS, whole=True)):
        pools.append(_Pool(placeholders[first + number], start, start + piece.elements))
        start += piece.elements
    return pools


def _parts(pools: Sequence[_Pool], layout: StateLayout, part_bytes: int) -> list[_Portion]:
    """Parts of about the same size, from the end of the buffer: backward comes to the last layers first."""
    if layout.groups or not pools:
        return []
    bytes_ = pools[-1].stop * layout.accumulation_type.itemsize
    count = min(MOST_PARTS, bytes_ // part_bytes)
    return list(_portions(pools, count)) if count > 1 else []


def _portions(pools: Sequence[_Pool], count: int) -> Iterator[_Portion]:
    each = pools[-1].stop / count
    taken: list[_Pool] = []
    for pool in reversed(pools):
        taken.insert(0, pool)
        if taken[-1].stop - pool.start >= each:
            yield _Portion(tuple(taken))
            taken = []
    if taken:
        yield _Portion(tuple(taken))


def _pooling(pools: Sequence[_Pool]) -> Node | None:
    """The one operation that adds to the pools; None where they are handled in another way."""
    users = {user for pool in pools for user in pool.node.users}
    if len(users) != 1:
        return None
    (user,) = users
    return user if user.target is _ADD and len(user.args) == 2 else None
