"""Returns the check of the loss as an output, for code that cannot raise in the middle of a step."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch.fx import GraphModule

from pilotage.program.graphs.rewrites import copy_graph
from pilotage.program.program import Computation, Program
from pilotage.torch_private import ASSERT_ASYNC


def with_returned_loss_check(program: Program) -> Program:
    """The program whose steps return, as an extra last output, whether the loss is finite."""
    if not program.checks_loss:
        return program
    computations = {action: _computation(computation) for action, computation in program.computations.items()}
    return replace(program, computations=computations, checks_loss=False)


def _computation(computation: Computation) -> Computation:
    if computation.graph is None:
        return computation
    return replace(computation, graph=_graph(computation.graph), returns_loss_check=bool(_checks(computation.graph)))


def _graph(graph: GraphModule) -> GraphModule:
    copy = copy_graph(graph)
    output = next(node for node in copy.graph.nodes if node.op == "output")
    for check in _checks(copy):
        output.args = ([*output.args[0], check.args[0]],)
        copy.graph.erase_node(check)
    copy.recompile()
    return copy


def _checks(graph: GraphModule) -> list[torch.fx.Node]:
    return [node for node in graph.graph.nodes if node.target is ASSERT_ASYNC]
