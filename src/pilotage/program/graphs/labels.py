"""Labels of values inside a captured graph, so that users can ask for them."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.fx import Node

from pilotage.torch_private import get_proxy_mode, get_proxy_slot

LOSS = "loss"
LOSS_SCALE = "loss scale"
"""What automatic loss scaling multiplies the loss by."""
EXCEPTIONS = "floating-point exceptions"
"""A flag for each operation that can produce NaN or infinity; `Program.watched_operations` names them."""

_LABELS = "pilotage_labels"


def gradient_of(parameter: str) -> str:
    """The label of a parameter's gradient from one micro-batch."""
    return f"gradient of {parameter}"


def updated(parameter: str) -> str:
    """The label of a parameter after its update."""
    return f"updated {parameter}"


def input_number(position: int) -> str:
    """The label of an input of one micro-batch."""
    return f"input {position}"


def label(tensor: Tensor, name: str) -> None:
    """Label a value in the graph being captured, if any."""
    node = traced_node(tensor)
    if node is not None:
        add_label(node, name)


def traced_node(tensor: Tensor) -> Node | None:
    """The node of a value in the graph being captured, or None."""
    capture = get_proxy_mode()
    slot: Any = None if capture is None else get_proxy_slot(tensor, capture.tracer, None)
    return None if slot is None else slot.proxy.node


def labels_of(node: Node) -> tuple[str, ...]:
    """The labels of a value."""
    labels: tuple[str, ...] = node.meta.get(_LABELS, ())
    return labels


def add_label(node: Node, name: str) -> None:
    """Add a label to a value."""
    if name not in labels_of(node):
        node.meta[_LABELS] = (*labels_of(node), name)
