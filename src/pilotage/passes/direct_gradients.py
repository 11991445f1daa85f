"""Gradients written directly into their pools, for schedules with one gradient per update."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch.fx import Graph, Node

from pilotage.program.graphs.gradient_pools import pooling_of, pools_of
from pilotage.program.graphs.rewrites import copy_graph
from pilotage.program.program import Action, Computation, Program
from pilotage.program.schedule import Schedule
from pilotage.torch_private import FOREACH_ZERO_

__all__ = ["with_direct_gradients"]

aten = torch.ops.aten


def with_direct_gradients(program: Program, schedule: Schedule) -> Program:
    """The program with pools that are overwritten instead of zeroed and added to; unchanged if that is impossible.

    Matrix products, such as the gradients of linear layers, are written into the pool without a temporary. This is for
    CPUs: where kernel launches are slow, one operation on all pools is better.
    """
    if not _pools_one_gradient(schedule):
        return program
    gradient, update = program.computations[Action.ACCUMULATE], program.computations[Action.UPDATE]
    direct, kept = _written_directly(gradient, program), _without_zeroing(update, program)
    if direct is None or kept is None:
        return program
    return replace(program, computations={**program.computations, Action.ACCUMULATE: direct, Action.UPDATE: kept})


def _pools_one_gradient(schedule: Schedule) -> bool:
    actions = [step.action for step in schedule.steps]
    return Action.UPDATE in actions and actions == [Action.ACCUMULATE, Action.UPDATE] * schedule.updates


def _written_directly(computation: Computation, program: Program) -> Computation | None:
    """The gradient step with each pool written by one operation."""
    if computation.graph is None or program.layout.replica_groups:
        return None
    made = copy_graph(computation.graph)
    pooling = pooling_of(pools_of(computation, made, program.layout))
    if pooling is None:
        return None
    pools, gradients = pooling.args
    written = [
        node
        for pool, gradient in zip(pools, gradients, strict=True)  # type: ignore[arg-type]
        for node in _write(made.graph, pool, gradient, pooling)
    ]
    made.graph.erase_node(pooling)
    for node in written:
        made.graph.erase_node(node)
    made.recompile()
    return replace(computation, graph=made)


def _write(graph: Graph, pool: Node, gradient: Node, pooling: Node) -> list[Node]:
    """Write a gradient into its pool as soon as it is computed; returns the nodes that are no longer needed."""
    factor = pooling.kwargs.get("alpha", 1)
    is_product = _is_only_pooled_product(gradient, pooling)
    with graph.inserting_after(gradient):
        if not is_product:
            made = graph.call_function(aten.mul.out, (gradient, factor), {"out": pool})
        else:
            # With beta = 0 the old content of the pool is ignored, even NaN.
            factors = {"beta": 0, "alpha": factor, "out": pool}
            made = graph.call_function(aten.addmm.out, (pool, *gradient.args), factors)
    made.meta = dict(gradient.meta)
    return [gradient] if is_product else []


def _is_only_pooled_product(gradient: Node, pooling: Node) -> bool:
    """Whether a gradient is a matrix product that nothing but its pool needs."""
    gradients: Any = pooling.args[1]
    is_used_once = [*gradient.users] == [pooling] and gradients.count(gradient) == 1
    return gradient.target is aten.mm.default and is_used_once


def _without_zeroing(computation: Computation, program: Program) -> Computation | None:
    """The update without zeroing the pools."""
    if computation.graph is None:
        return None
    made = copy_graph(computation.graph)
    pools = [pool.node for pool in pools_of(computation, made, program.layout)]
    zeroing = [node for node in made.graph.nodes if node.target is FOREACH_ZERO_]
    if len(zeroing) != 1 or list(zeroing[0].args[0]) != pools:
        return None
    made.graph.erase_node(zeroing[0])
    made.recompile()
    return replace(computation, graph=made)
