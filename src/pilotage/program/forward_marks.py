"""Which values of a captured graph belong to forward, and which of them are to be kept for backward."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.fx import Node
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot

_KEPT = "pilotage_kept"
_FORWARD = "pilotage_forward"


def keep_for_backward(tensor: Tensor) -> None:
    """Keep a value of forward; what lies between two kept values is computed again in backward."""
    capture = get_proxy_mode()
    if capture is None:
        return
    slot: Any = get_proxy_slot(tensor, capture.tracer, None)
    if slot is not None:
        slot.proxy.node.meta[_KEPT] = True


def end_of_forward() -> None:
    """Say that everything computed so far belongs to forward."""
    capture = get_proxy_mode()
    if capture is not None:
        for node in capture.tracer.graph.nodes:
            if node.op == "call_function":
                node.meta[_FORWARD] = True


def is_kept(node: Node) -> bool:
    """Whether a value is to be kept for backward."""
    return _KEPT in node.meta


def is_forward(node: Node) -> bool:
    """Whether a value is computed by forward."""
    return _FORWARD in node.meta


def unmarked(node: Node) -> dict[str, Any]:
    """What else is noted of a value."""
    return {key: content for key, content in node.meta.items() if key not in (_KEPT, _FORWARD)}
