"""Gradients that are computed where they are pooled, where a pool gets one gradient between updates."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
from torch.fx import Graph, Node

from pilotage.program.graphs.gradient_pools import pooling_of, pools_of
from pilotage.program.graphs.rewrites import copied
from pilotage.program.program import Action, Computation, Program
from pilotage.program.schedule import Schedule

__all__ = ["with_direct_gradients"]

aten = torch.ops.aten


def with_direct_gradients(program: Program, schedule: Schedule) -> Program:
    """The program with pools that are overwritten instead of emptied and added to; the same where that cannot be.

    Products of matrices, as the gradients of linear layers are, go into the pool without a stop. Made for processors:
    where launches are slow, all pools are better handled by one operation.
    """
    if not _pools_one_gradient(schedule):
        return program
    gradient, update = program.computations[Action.ACCUMULATE], program.computations[Action.UPDATE]
    direct, kept = _written_directly(gradient, program), _without_emptying(update, program)
    if direct is None or kept is None:
        return program
    return replace(program, computations={**program.computations, Action.ACCUMULATE: direct, Action.UPDATE: kept})


def _pools_one_gradient(schedule: Schedule) -> bool:
    actions = [step.action for step in schedule.steps]
    return Action.UPDATE in actions and actions == [Action.ACCUMULATE, Action.UPDATE] * schedule.updates


def _written_directly(computation: Computation, program: Program) -> Computation | None:
    """The gradient step, in which each pool is written by one operation."""
    if computation.graph is None or program.layout.replica_groups:
        return None
    made = copied(computation.graph)
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
    """Let a pool get its share of a gradient as soon as that is there; returns what is no longer needed."""
    share = pooling.kwargs.get("alpha", 1)
    replaced = _turned_product(gradient, pooling)
    with graph.inserting_after(gradient):
        if not replaced:
            made = graph.call_function(aten.mul.out, (gradient, share), {"out": pool})
        else:
            # Where beta is zero what is in the pool plays no part, not even one that is no number.
            factors = {"beta": 0, "alpha": share, "out": pool}
            made = graph.call_function(aten.addmm.out, (pool, *replaced[-1].args), factors)
    made.meta = dict((replaced or [gradient])[-1].meta)
    return replaced


def _turned_product(gradient: Node, pooling: Node) -> list[Node]:
    """The gradient down to the product of matrices that it is, which autograd turns around twice; empty where it is none.

    None of these may be needed elsewhere: they are going to be replaced.
    """
    chain = [gradient]
    while chain[-1].target is aten.t.default:
        chain.append(chain[-1].args[0])  # type: ignore[arg-type]
    is_product = chain[-1].target is aten.mm.default and len(chain) % 2 == 1
    gradients: Any = pooling.args[1]
    is_alone = gradients.count(gradient) == 1 and all(
        [*node.users] == [user] for user, node in pairwise([pooling, *chain])
    )
    return chain if is_product and is_alone else []


def _without_emptying(computation: Computation, program: Program) -> Computation | None:
    """The update, which leaves the pools as they are."""
    if computation.graph is None:
        return None
    made = copied(computation.graph)
    pools = [pool.node for pool in pools_of(computation, made, program.layout)]
    emptying = [node for node in made.graph.nodes if node.target is aten._foreach_zero_.default]
    if len(emptying) != 1 or list(emptying[0].args[0]) != pools:
        return None
    made.graph.erase_node(emptying[0])
    made.recompile()
    return replace(computation, graph=made)
