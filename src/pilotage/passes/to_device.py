"""Moves a captured program to another device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.fx.node import map_aggregate

from pilotage.program.graphs.rewrites import copy_graph
from pilotage.program.program import Program


def to_device(program: Program, source: torch.device, target: torch.device) -> Program:
    """The same program with every use of one device replaced by another."""
    if source == target:
        return program
    computations = {
        action: computation
        if computation.graph is None
        else replace(computation, graph=graph_to_device(computation.graph, source, target))
        for action, computation in program.computations.items()
    }
    return replace(program, computations=computations)


def graph_to_device(graph: GraphModule, source: torch.device, target: torch.device) -> GraphModule:
    """A copy of a graph with its constants and new tensors on another device."""

    def there(value: Any) -> Any:
        return target if value == source else value

    copy = copy_graph(graph)
    for node in copy.graph.nodes:
        if node.op == "call_function":
            node.args, node.kwargs = map_aggregate(node.args, there), map_aggregate(node.kwargs, there)
        elif node.op == "get_attr":
            _move_constant(copy, str(node.target), source, target)
    copy.recompile()
    return copy


def _move_constant(graph: GraphModule, name: str, source: torch.device, target: torch.device) -> None:
    value = getattr(graph, name)
    if isinstance(value, Tensor) and value.device == source:
        delattr(graph, name)
        graph.register_buffer(name, value.to(target), persistent=False)
