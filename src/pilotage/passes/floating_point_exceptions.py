"""Detects operations that produce NaN or infinity: division by zero, overflow, roots of negative numbers.

A watched program reports each operation that produces a NaN from arguments without one, or an infinity from finite
ones. Literal infinities, as in masks, and what follows from them are not reported.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from pilotage.program.graphs.aliases import aliased_arguments
from pilotage.program.graphs.source_lines import line_of
from pilotage.torch_private import OpOverload, schema_of

aten = torch.ops.aten

_COMPARISONS = frozenset(
    overload
    for packet in (aten.lt, aten.le, aten.gt, aten.ge)
    for overload in (getattr(packet, name) for name in packet.overloads())
)


def watched(graph: GraphModule) -> tuple[GraphModule, tuple[str, ...]]:
    """The graph with one more result, a flag for each operation that can fail, and the operations with their lines."""
    watch = _Watch()
    for node in graph.graph.nodes:
        watch.copy(node)
    return GraphModule(graph, watch.graph), tuple(watch.operations)


class _Watch:
    """Copies a graph, and adds a check of every result."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.operations: list[str] = []
        self._copies: dict[Node, Node] = {}
        self._flags: dict[Node, tuple[Node, Node]] = {}
        """For each original node: whether its value contains a NaN, and whether it contains an infinity."""
        self._failures: list[Node] = []

    def copy(self, node: Node) -> None:
        if node.op == "output":
            results: Any = node.args[0]
            self.graph.output([*(self._copies[result] for result in results), self._verdict()])
            return
        self._copies[node] = self.graph.node_copy(node, self._copies.__getitem__)
        if node.op == "call_function":
            self._look_at(node)

    def _look_at(self, node: Node) -> None:
        source = node.args[0] if node.target is operator.getitem else node
        assert isinstance(source, Node)
        arguments = [value for value in source.all_input_nodes if _is_float(value)]
        # A comparison with infinity, as in the check of the loss, asks for such values on purpose.
        if source.target in _COMPARISONS and arguments and not _names_infinity(source):
            self._note(source, self._any(self._nan(value) for value in arguments))
        if not _is_float(node) or not _computes(source) or not arguments:
            return
        changed = [value for value, writes in aliased_arguments(source) if writes]
        for value in changed:
            self._flags.pop(value, None)
        others = [value for value in arguments if value not in changed]
        had_nan = self._any(self._nan(value) for value in others)
        failed = self._without(self._nan(node), had_nan)
        if not changed and not _names_infinity(source):
            had_infinity = self._any(self._infinity(value) for value in others)
            fresh = self._without(self._without(self._infinity(node), had_infinity), had_nan)
            failed = self._call(aten.logical_or.default, failed, fresh)
        self._note(source, failed)

    def _note(self, node: Node, failed: Node | None) -> None:
        if failed is not None:
            self._failures.append(failed)
            line = line_of(node)
            self.operations.append(f"{node.target} ({line})" if line else str(node.target))

    def _verdict(self) -> Node:
        if not self._failures:
            return self._call(aten.zeros.default, [1], dtype=torch.bool)
        return self._call(aten.stack.default, self._failures)

    def _nan(self, node: Node) -> Node:
        return self._look(node)[0]

    def _infinity(self, node: Node) -> Node:
        return self._look(node)[1]

    def _look(self, node: Node) -> tuple[Node, Node]:
        if node not in self._flags:
            copy = self._copies[node]
            questions = (aten.isnan.default, aten.isinf.default)
            nan, infinity = (self._call(aten.any.default, self._call(question, copy)) for question in questions)
            self._flags[node] = (nan, infinity)
        return self._flags[node]

    def _any(self, flags: Iterable[Node]) -> Node | None:
        result: Node | None = None
        for flag in flags:
            result = flag if result is None else self._call(aten.logical_or.default, result, flag)
        return result

    def _without(self, flag: Node, excuse: Node | None) -> Node:
        if excuse is None:
            return flag
        return self._call(aten.logical_and.default, flag, self._call(aten.logical_not.default, excuse))

    def _call(self, operation: OpOverload, *arguments: object, **settings: object) -> Node:
        return self.graph.call_function(operation, tuple(arguments), settings)  # type: ignore[arg-type]


def _is_float(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _computes(node: Node) -> bool:
    """Whether an operation computes, instead of returning a view or uninitialised memory."""
    if not isinstance(node.target, OpOverload) or "empty" in str(node.target):
        return False
    looks = any(
        argument.alias_info and not argument.alias_info.is_write for argument in schema_of(node.target).arguments
    )
    return not looks


def _names_infinity(node: Node) -> bool:
    return any(isinstance(value, float) and not math.isfinite(value) for value in (*node.args, *node.kwargs.values()))
