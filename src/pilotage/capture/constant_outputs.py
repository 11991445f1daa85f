"""Outputs that are the same in every run: found in a captured graph, or by following data through an eager run."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torch.overrides import TorchFunctionMode

from pilotage.torch_private import OpOverload, TorchDispatchMode, schema_of, storage_address, tree_leaves


def constant_outputs(graph: GraphModule) -> tuple[int, ...]:
    """Outputs that depend on no argument, no random number and nothing outside torch."""
    varying = _varying(list(graph.graph.nodes))
    output = next(node for node in graph.graph.nodes if node.op == "output")
    return tuple(position for position, result in enumerate(output.args[0]) if result not in varying)


def _varying(nodes: list[Node]) -> set[Node]:
    varying: set[Node] = set()
    size = -1
    while len(varying) > size:
        size = len(varying)
        for node in nodes:
            if _is_source(node) or varying.intersection(node.all_input_nodes):
                varying.add(node)
                if _writes(node):
                    # A write through a view also changes its base.
                    varying.update(_ancestors(node))
    return varying


def _is_source(node: Node) -> bool:
    if node.op != "call_function" or node.target is operator.getitem:
        return node.op == "placeholder"
    return _varies_by_itself(node.target)


def _writes(node: Node) -> bool:
    return isinstance(node.target, OpOverload) and bool(schema_of(node.target).is_mutable)


def _ancestors(node: Node) -> set[Node]:
    found: set[Node] = set()
    waiting = [node]
    while waiting:
        for above in waiting.pop().all_input_nodes:
            if above not in found:
                found.add(above)
                waiting.append(above)
    return found


def _varies_by_itself(operation: Any) -> bool:
    """Whether an operation draws random numbers, or is not one of torch's own."""
    is_torchs = isinstance(operation, OpOverload) and operation.namespace in ("aten", "prims", "prim")
    return not is_torchs or torch.Tag.nondeterministic_seeded in operation.tags


class DataFlow:
    """While active, tracks which memory depends on arguments, random numbers or code outside torch."""

    def __init__(self, arguments: Iterable[Tensor]) -> None:
        # Memory freed during the run may be reused for another tensor, which is then recorded again.
        self._varying = {_memory(tensor): True for tensor in arguments}
        self._values_are_out = False
        self._active = ExitStack()

    def __enter__(self) -> Self:
        self._active.enter_context(_Values(self))
        self._active.enter_context(_Operations(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._active.close()

    def varies(self, tensor: Tensor) -> bool:
        """Whether a tensor may have other values in the next run."""
        return self._varying.get(_memory(tensor), False)

    def note(self, operation: Any, arguments: Any, results: Any) -> None:
        """Track data through an operation."""
        # No operation allocates the memory of a literal, and another tensor may have used it before.
        given = [] if operation in _LITERALS else _tensors(arguments)
        made = _tensors(results)
        varies = self._values_are_out or _varies_by_itself(operation) or any(map(self.varies, given))
        if varies and not made:
            self.note_values()
        for tensor in (*made, *(given if schema_of(operation).is_mutable and varies else ())):
            self._varying[_memory(tensor)] = varies

    def note_values(self) -> None:
        """Record that Python has read a varying value: every later result may depend on it."""
        self._values_are_out = True


class _Operations(TorchDispatchMode):
    def __init__(self, flow: DataFlow) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._flow = flow

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run and record an operation."""
        result = func(*args, **(kwargs or {}))
        self._flow.note(func, (args, kwargs), result)
        return result


class _Values(TorchFunctionMode):
    """Detects reads of a tensor's memory, which no operation shows."""

    def __init__(self, flow: DataFlow) -> None:
        super().__init__()
        self._flow = flow

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function."""
        if func in _READERS and any(map(self._flow.varies, _tensors(args))):
            self._flow.note_values()
        return func(*args, **(kwargs or {}))


_LITERALS = frozenset({torch.ops.aten.lift_fresh.default, torch.ops.aten.lift_fresh_copy.default})

_READERS = frozenset({Tensor.tolist, Tensor.numpy, Tensor.__array__, Tensor.__dlpack__, Tensor.data_ptr})


def _tensors(values: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


def _memory(tensor: Tensor) -> int:
    memory: int = storage_address(tensor.untyped_storage())
    return memory
