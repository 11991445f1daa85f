"""Finds where graphs pool gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch.fx import GraphModule, Node

from pilotage.program.layout import Section, StateLayout
from pilotage.program.program import Computation
from pilotage.torch_private import FOREACH_ADD_LISTS_

ADD = FOREACH_ADD_LISTS_


@dataclass(frozen=True)
class Pool:
    """The pooled gradients of one parameter."""

    node: Node
    start: int
    stop: int
    """The end of its range in the flat buffer of all pools."""


def pools_of(computation: Computation, graph: GraphModule, layout: StateLayout) -> list[Pool]:
    """The pools in a gradient or update step, in the order of the flat buffer."""
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    first = 0
    for section in computation.sections:
        if section is Section.GRADIENTS:
            break
        first += len(layout.section(section))
    pools, start = [], 0
    for number, piece in enumerate(layout.section(Section.GRADIENTS, whole=True)):
        pools.append(Pool(placeholders[first + number], start, start + piece.elements))
        start += piece.elements
    return pools


def pooling_of(pools: Sequence[Pool]) -> Node | None:
    """The one operation that adds to all pools; None if pooling works differently."""
    users = {user for pool in pools for user in pool.node.users}
    if len(users) != 1:
        return None
    (user,) = users
    return user if user.target is ADD and len(user.args) == 2 else None


def writers_of(pools: Sequence[Pool]) -> dict[Node, Node] | None:
    """The operation that writes each pool that gets a gradient; None if pooling works differently."""
    if any(len(pool.node.users) > 1 for pool in pools):
        return None
    writers = {pool.node: next(iter(pool.node.users)) for pool in pools if pool.node.users}
    is_overwritten = all(writer.kwargs.get("out") is node for node, writer in writers.items())
    return writers if writers and is_overwritten else None
