"""Increments the batch counters of all normalisations of a network with one kernel."""

from __future__ import annotations

import operator
from collections import defaultdict
from typing import Any

import torch
from torch.fx import GraphModule, Node

from pilotage.compiler.rewrites.insertion import insert_call
from pilotage.torch_private import FOREACH_ADD_NUMBER

aten = torch.ops.aten


def add_counters_together(graph: GraphModule) -> None:
    """Add the same number to all integer scalar arguments with one operation."""
    alike: dict[Any, list[Node]] = defaultdict(list)
    last = None
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            last = node
        elif _counts(node):
            value = node.args[0].meta["val"]
            alike[node.args[1], value.dtype, value.device].append(node)
    for (number, *_), nodes in alike.items():
        assert last is not None
        if len(nodes) > 1:
            with graph.graph.inserting_after(last):
                sums = insert_call(graph, FOREACH_ADD_NUMBER, [node.args[0] for node in nodes], number)
            _replace(graph, nodes, sums)


def _counts(node: Node) -> bool:
    if node.target is not aten.add.Tensor or node.kwargs:
        return False
    given, number = node.args
    if not isinstance(given, Node) or given.op != "placeholder" or not isinstance(number, int):
        return False
    value = given.meta["val"]
    return not value.dim() and not value.is_floating_point()


def _replace(graph: GraphModule, nodes: list[Node], sums: Node) -> None:
    place = sums
    for number, node in enumerate(nodes):
        with graph.graph.inserting_after(place):
            place = insert_call(graph, operator.getitem, sums, number)
        node.replace_all_uses_with(place)
        graph.graph.erase_node(node)
