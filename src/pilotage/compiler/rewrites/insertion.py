"""New nodes in a graph that knows what its values look like."""

from __future__ import annotations

from typing import Any

from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree


def insert_call(graph: GraphModule, target: Any, *arguments: Any, **options: Any) -> Node:
    """Call an operation here; what it gives is found out from what it is given."""
    node = graph.graph.call_function(target, arguments, options)
    given, named = pytree.tree_map(
        lambda each: each.meta["val"] if isinstance(each, Node) else each, (arguments, options)
    )
    node.meta["val"] = target(*given, **named)
    return node
