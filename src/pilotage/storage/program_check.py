"""Checks that the parts of a program from a file fit together, and how much memory it needs.

Every graph runs once on fake tensors, as in capture: an operation with invalid arguments raises here, before a kernel
sees them, and the sizes of all values are known before any is allocated.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from pilotage.errors import ProgramFileError
from pilotage.program.graphs.fake_kernels import every_shape
from pilotage.program.layout import StateLayout, variable_values
from pilotage.program.program import Action, Computation, Program
from pilotage.program.specification import TensorSpec
from pilotage.program.structure import count_tensors
from pilotage.storage.index_sources import check_sources
from pilotage.storage.layout_text import storage_bytes
from pilotage.storage.permission import Permission
from pilotage.storage.shape_checks import check_shapes, named_arguments
from pilotage.torch_private import FakeTensorMode, OpOverload, schema_of, storage_address

_HOST = torch.device("cpu")


def check_program(program: Program, permission: Permission) -> None:
    """Raise if the parts of a program do not fit together, or if a step needs more memory than allowed."""
    if not program.computations:
        raise ProgramFileError("The file contains a program without a computation. It was modified or is damaged.")
    _check_values(program)
    if permission.trusted:
        return
    allowed = permission.memory or machine_memory()
    state = sum(storage_bytes(spec) for spec in _state(program.layout))
    if state > allowed:
        raise _too_large("Its weights and the optimizer's state", state, allowed)
    with every_shape(), torch.no_grad(), _quiet():
        for action, computation in program.computations.items():
            assert computation.graph is not None
            specifications = _arguments(program, action, computation)
            run = _Run(computation.graph, specifications, 0 if action is Action.UPDATE else len(program.inputs))
            needed = run.peak_bytes() + state
            if needed > allowed:
                raise _too_large(f"A step ({action.value})", needed, allowed)
            _check_outputs(program, action, run.outputs)


def _check_values(program: Program) -> None:
    """Raise if the program reads a hyperparameter that its plan does not have."""
    known = () if program.plan is None else variable_values(program.plan)
    if missing := [value for value in program.layout.values if value not in known]:
        raise ProgramFileError(
            f"The program reads {missing[0].name!r} of group {missing[0].group} from its optimizer, which has no such "
            "value. The file was modified or is damaged."
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep torch from logging operations that it cannot run: they raise an error anyway."""
    logger = logging.getLogger(FakeTensorMode.__module__)
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def machine_memory() -> int:
    """The memory of this machine in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _state(layout: StateLayout) -> Iterator[TensorSpec]:
    for name, spec in layout.parameters.items():
        copies = layout.replica_groups[name].count if name in layout.replica_groups else 1
        yield from [spec] * copies
    yield from layout.buffers.values()
    yield from layout.slots.values()
    yield from (layout.parameters[name] for name in layout.trained)


def _arguments(program: Program, action: Action, computation: Computation) -> list[TensorSpec]:
    state = [
        spec for section in computation.sections for spec in program.layout.section(section, whole=computation.whole)
    ]
    return state if action is Action.UPDATE else [*state, *program.inputs]


def _check_outputs(program: Program, action: Action, outputs: Sequence[Any]) -> None:
    wanted = 0
    if action is not Action.UPDATE and program.outputs is not None:
        wanted = count_tensors(program.outputs) + len(program.anchors)
    if len(outputs) != wanted or not all(isinstance(output, Tensor) for output in outputs):
        raise ProgramFileError(
            f"The graph of the {action.value} step returns {len(outputs)} values, but the program declares {wanted} "
            "tensors. The file was modified or is damaged."
        )


def _too_large(what: str, needed: int, allowed: int) -> ProgramFileError:
    return ProgramFileError(
        f"{what} would need {needed / 2**30:,.1f} GiB of memory, but {allowed / 2**30:,.1f} GiB are allowed. If you "
        "trust the file, allow more with max_memory=, in bytes, or load it with trusted=True."
    )


class _Run:
    """One run of a graph on fake tensors."""

    def __init__(self, graph: GraphModule, arguments: Sequence[TensorSpec], inputs: int) -> None:
        self._graph = graph
        self._nodes: list[Node] = list(graph.graph.nodes)
        self._arguments = arguments
        self._given = inputs
        self._inputs: frozenset[Node] = frozenset()
        self._values: dict[Node, Any] = {}
        self._written: dict[int, Node] = {}
        self._memory = _Memory()
        self.outputs: Sequence[Any] = ()

    def peak_bytes(self) -> int:
        """Run the graph; returns the peak memory of its arguments and values."""
        inputs = [node for node in self._nodes if node.op == "placeholder"]
        if len(inputs) != len(self._arguments):
            raise ProgramFileError(
                f"A graph of the file takes {len(inputs)} tensors, but the program has {len(self._arguments)} for it. "
                "It was modified or is damaged."
            )
        self._inputs = frozenset(inputs[len(inputs) - self._given :])
        specifications = dict(zip(inputs, self._arguments, strict=True))
        last_uses = _last_uses(self._nodes)
        with FakeTensorMode(allow_fallback_kernels=False):
            for node in self._nodes:
                self._values[node] = self._run(node, specifications)
                self._memory.hold(node, self._values[node])
                for used in last_uses.get(node, ()):
                    self._memory.release(used)
        return self._memory.peak

    def _run(self, node: Node, specifications: Mapping[Node, TensorSpec]) -> Any:
        match node.op:
            case "placeholder":
                return specifications[node].empty(_HOST)
            case "get_attr":
                return TensorSpec.of(getattr(self._graph, str(node.target))).empty(_HOST)
            case "output":
                returned = torch.fx.node.map_arg(node.args[0], self._values.__getitem__)
                if not isinstance(returned, (list, tuple)):
                    raise ProgramFileError("A graph of the file does not return a list. It was modified or is damaged.")
                self.outputs = returned
                return None
            case _:
                return self._call(node)

    def _call(self, node: Node) -> Any:
        args = torch.fx.node.map_arg(node.args, self._values.__getitem__)
        kwargs = torch.fx.node.map_arg(node.kwargs, self._values.__getitem__)
        target: Any = node.target
        try:
            if isinstance(target, OpOverload):
                check_shapes(target, args, kwargs)
                check_sources(node, self._values, self._inputs, self._written)
                self._written.update(dict.fromkeys(_written_storages(target, args, kwargs), node))
            return target(*map(_on_host, args), **{key: _on_host(value) for key, value in kwargs.items()})
        except ProgramFileError:
            raise
        except Exception as error:
            said = str(error).strip().splitlines() or [type(error).__name__]
            raise ProgramFileError(
                f"The program calls {target} with arguments that do not fit: {said[0]} The file was modified or is "
                "damaged."
            ) from error


def _written_storages(operation: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[int]:
    if not schema_of(operation).is_mutable:
        return
    given = named_arguments(operation, args, kwargs)
    for argument in schema_of(operation).arguments:
        if argument.alias_info is not None and argument.alias_info.is_write:
            yield from (_storage(tensor)[0] for tensor in _tensors(given[argument.name]))


def _on_host(value: Any) -> Any:
    """Replace devices by the host, which always exists; shapes are the same on every device."""
    return _HOST if isinstance(value, torch.device) and value.type != "meta" else value


def _last_uses(nodes: Sequence[Node]) -> dict[Node, list[Node]]:
    """For each node, the values that are freed after it."""
    seen: set[Node] = set()
    dropped: dict[Node, list[Node]] = {}
    for node in reversed(nodes):
        fresh = [used for used in node.all_input_nodes if used not in seen]
        seen.update(fresh)
        if node.op != "output":
            dropped[node] = [*fresh, *([] if node.users or node.op == "placeholder" else [node])]
    return dropped


class _Memory:
    """Tracks the memory of values; shared storages count once."""

    def __init__(self) -> None:
        self._owners: dict[int, int] = {}
        self._held: dict[Node, list[tuple[int, int]]] = {}
        self._now = 0
        self.peak = 0

    def hold(self, node: Node, value: Any) -> None:
        storages = [_storage(tensor) for tensor in _tensors(value)]
        self._held[node] = storages
        for key, size in storages:
            if self._owners.get(key, 0) == 0:
                self._now += size
            self._owners[key] = self._owners.get(key, 0) + 1
        self.peak = max(self.peak, self._now)

    def release(self, node: Node) -> None:
        for key, size in self._held.pop(node, ()):
            self._owners[key] -= 1
            if self._owners[key] == 0:
                self._now -= size


def _storage(tensor: Tensor) -> tuple[int, int]:
    if tensor.layout is not torch.strided:
        # An upper bound: the dense tensor plus an index per dimension for each element.
        return id(tensor), tensor.numel() * (tensor.element_size() + 8 * max(tensor.dim(), 1))
    storage = tensor.untyped_storage()
    return storage_address(storage), storage.nbytes()


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
