"""Which stage of a pipeline each operation of a graph belongs to.

Whoever runs forward says which stage it is in; backward follows the stage of the operation that it differentiates.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import torch
from torch.fx import Node
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.utils._python_dispatch import TorchDispatchMode

_STAGE = "pilotage_stage"

_current: ContextVar[int | None] = ContextVar("pilotage_stage", default=None)


def enter_stage(number: int | None) -> None:
    """Let all operations from here on belong to a stage, or to none."""
    _current.set(number)


def stage_of(node: Node) -> int | None:
    """The stage of an operation of a graph; None where nothing was said, as in the update of weights."""
    stage: int | None = node.meta.get(_STAGE)
    return stage


def set_stage(node: Node, stage: int) -> None:
    """Put an operation in a stage."""
    node.meta[_STAGE] = stage


class StageNotes(TorchDispatchMode):
    """While active, notes the stage of each operation that is captured."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._of_sequence: dict[int, int] = {}

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operation, and note the stage of what it leaves in the graph."""
        stage, capture = self._stage(), get_proxy_mode()
        if stage is None or capture is None:
            return func(*args, **(kwargs or {}))
        root = capture.tracer.graph._root
        last = root.prev
        result = func(*args, **(kwargs or {}))
        node = root.prev
        while node is not last:
            set_stage(node, stage)
            node = node.prev
        return result

    def _stage(self) -> int | None:
        differentiated: Any = torch._C._current_autograd_node()
        if differentiated is not None:
            return self._of_sequence.get(differentiated._sequence_nr())
        stage = _current.get()
        if stage is not None:
            # The number that autograd gave to this operation. Operations without one must not take the last one's.
            self._of_sequence.setdefault(torch._C._autograd._get_sequence_nr() - 1, stage)
        return stage
