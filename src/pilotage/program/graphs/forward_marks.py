"""Marks which values of a captured graph belong to forward, and which of them to keep for backward."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.fx import Graph, Node

from pilotage.program.graphs.labels import traced_node
from pilotage.torch_private import get_proxy_mode

_KEPT = "pilotage_kept"
_FORWARD = "pilotage_forward"


def keep_for_backward(tensor: Tensor) -> None:
    """Keep a value of forward for backward; values between two kept ones are recomputed."""
    node = traced_node(tensor)
    if node is not None:
        keep(node)


def keep(node: Node) -> None:
    """Keep a value of a captured graph for backward."""
    node.meta[_KEPT] = True


def end_of_forward() -> None:
    """Mark everything computed so far as forward."""
    capture = get_proxy_mode()
    if capture is not None:
        for node in capture.tracer.graph.nodes:
            if node.op == "call_function":
                node.meta[_FORWARD] = True


def is_kept(node: Node) -> bool:
    """Whether to keep a value for backward."""
    return _KEPT in node.meta


def is_forward(node: Node) -> bool:
    """Whether a value is computed by forward."""
    return _FORWARD in node.meta


def backward_of(graph: Graph) -> list[Node]:
    """The operations outside forward."""
    return list(filter(_is_backward, graph.nodes))


def last_use_of_forward(graph: Graph) -> int:
    """The position of the last backward operation that needs a value of forward; 0 if none does."""
    uses = (_is_backward(node) and any(map(is_forward, node.all_input_nodes)) for node in graph.nodes)
    return max((position for position, is_use in enumerate(uses) if is_use), default=0)


def _is_backward(node: Node) -> bool:
    return node.op == "call_function" and not is_forward(node)


def unmarked(node: Node) -> dict[str, Any]:
    """The metadata of a value without these marks."""
    return {key: content for key, content in node.meta.items() if key not in (_KEPT, _FORWARD)}
