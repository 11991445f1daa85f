"""Inserts nodes into a graph with shape metadata."""

from __future__ import annotations

from typing import Any

from torch.fx import GraphModule, Node

from pilotage.torch_private import tree_map


def insert_call(graph: GraphModule, target: Any, *arguments: Any, **options: Any) -> Node:
    """Insert a call of an operation, with the metadata of its result."""
    node = graph.graph.call_function(target, arguments, options)
    given, named = tree_map(lambda each: each.meta["val"] if isinstance(each, Node) else each, (arguments, options))
    node.meta["val"] = target(*given, **named)
    return node
