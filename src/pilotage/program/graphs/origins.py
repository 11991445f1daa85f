"""Where in a model each operation of a graph comes from: its pipeline stage, its scope, its module and the user's line.

Forward sets them; backward operations inherit those of the operation they differentiate. FX could record
lines itself, but to skip its own files it imports half of the compiler, which takes longer than a capture.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from torch.fx import Node

from pilotage.program.graphs.source_lines import CurrentLine
from pilotage.torch_private import (
    TorchDispatchMode,
    current_autograd_node,
    get_proxy_mode,
    next_sequence_number,
    sequence_number,
)

_STAGE = "pilotage_stage"
_SCOPE = "pilotage_scope"
_MODULE = "pilotage_module"

_Place: TypeAlias = tuple[int | None, str, str | None, str]

_stage: ContextVar[int | None] = ContextVar("pilotage_stage", default=None)
_scope: ContextVar[str] = ContextVar("pilotage_scope", default="")
_module: ContextVar[str] = ContextVar("pilotage_module", default="")


def enter_stage(number: int | None) -> None:
    """Put all following operations of forward in a pipeline stage, counted from 0; None leaves the stages."""
    _stage.set(number)


@contextmanager
def in_scope(name: str) -> Iterator[None]:
    """Put the operations of the block in a scope, nested in the current one."""
    token = _scope.set(f"{_scope.get()}{name}/")
    try:
        yield
    finally:
        _scope.reset(token)


def enter_module(path: str) -> str:
    """Put all following operations of forward in a module of the model; returns the module they were in before."""
    before = _module.get()
    _module.set(path)
    return before


def module_of(node: Node) -> str:
    """The path of the module of an operation; empty outside modules."""
    module: str = node.meta.get(_MODULE, "")
    return module


def stage_of(node: Node) -> int | None:
    """The stage of an operation; None outside stages, as in the update of weights."""
    stage: int | None = node.meta.get(_STAGE)
    return stage


def set_stage(node: Node, stage: int) -> None:
    """Put an operation in a stage."""
    node.meta[_STAGE] = stage


def scoped_name(node: Node) -> str:
    """The name of an operation with its scope: ``encoder/layer/addmm``."""
    return f"{scope_of(node)}{node.name}"


def scope_of(node: Node) -> str:
    """The scope of an operation; each name ends with a slash."""
    scope: str = node.meta.get(_SCOPE, "")
    return scope


def set_scope(node: Node, scope: str) -> None:
    """Put an operation in a scope; each name ends with a slash."""
    node.meta[_SCOPE] = scope


class OriginRecorder(TorchDispatchMode):
    """While active, records the origin of each captured operation."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._of_sequence: dict[int, _Place] = {}
        self._lines = CurrentLine()

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operation, and record the origin of its new nodes."""
        place, capture = self._place(), get_proxy_mode()
        if place == _NOWHERE or capture is None:
            return func(*args, **(kwargs or {}))
        nodes = capture.tracer.graph.nodes
        last = next(iter(reversed(nodes)), None)
        result = func(*args, **(kwargs or {}))
        for node in reversed(nodes):
            if node is last:
                break
            _mark(node, place)
        return result

    def _place(self) -> _Place:
        differentiated: Any = current_autograd_node()
        if differentiated is not None:
            return self._of_sequence.get(sequence_number(differentiated), _NOWHERE)
        place = (_stage.get(), _scope.get(), self._lines.present(), _module.get())
        # Autograd's sequence number of this operation. An operation without one must not overwrite the last one's.
        self._of_sequence.setdefault(next_sequence_number() - 1, place)
        return place


_NOWHERE: _Place = (None, "", None, "")


def _mark(node: Node, place: _Place) -> None:
    stage, scope, line, module = place
    if line is not None:
        node.meta.setdefault("stack_trace", line)
    if stage is not None:
        set_stage(node, stage)
    if scope:
        set_scope(node, scope)
    if module:
        node.meta[_MODULE] = module
