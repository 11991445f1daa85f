"""Which values of a graph share memory, and when that memory is written."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from torch.fx import Graph, Node

from pilotage.program.graphs.rewrites import hidden_writes
from pilotage.torch_private import UNSAFE_VIEW, OpOverload, schema_of

_UNDECLARED_VIEWS = frozenset({UNSAFE_VIEW})
"""Operations that return a view although their schema does not declare it."""


def aliased_arguments(node: Node) -> list[tuple[Node, bool]]:
    """The arguments whose memory an operation writes or returns, each with whether it is written."""
    if not isinstance(node.target, OpOverload):
        return []
    found = []
    for position, argument in enumerate(schema_of(node.target).arguments):
        if argument.alias_info is None:
            continue
        value = node.args[position] if position < len(node.args) else node.kwargs.get(argument.name)
        found += [(item, bool(argument.alias_info.is_write)) for item in items(value)]
    return found


def written_arguments(node: Node) -> list[Node]:
    """The arguments that an operation writes to, declared in its schema or not."""
    return [*(value for value, writes in aliased_arguments(node) if writes), *hidden_writes(node)]


def items(value: Any) -> list[Node]:
    """The nodes of an argument that is a node or a list of nodes."""
    values = value if isinstance(value, (list, tuple)) else [value]
    return [item for item in values if isinstance(item, Node)]


class Memories:
    """The memory of every value in a graph, and the positions where it is written."""

    def __init__(self, graph: Graph) -> None:
        self.position = {node: position for position, node in enumerate(graph.nodes)}
        self._parent: dict[Node, Node] = {}
        self._writes: dict[Node, list[int]] = {}
        for node in graph.nodes:
            if node.op == "call_function":
                self._note(node)

    def written(self, node: Node, first: int, last: int) -> bool:
        """Whether the memory of a value is written between two positions, inclusive."""
        return any(first <= position <= last for position in self._writes.get(self.memory(node), ()))

    def _note(self, node: Node) -> None:
        for value in self._returned(node):
            self._unite(node, value)
        for value in written_arguments(node):
            self._writes.setdefault(self.memory(value), []).append(self.position[node])

    def _returned(self, node: Node) -> Sequence[Node]:
        """The arguments that share memory with the result."""
        if node.target is operator.getitem:
            source = node.args[0]
            # Views in a list share the memory of their source; other results each have their own.
            return [source] if isinstance(source, Node) and source in self._parent else []
        if node.target in _UNDECLARED_VIEWS:
            return items(node.args[0])
        if not isinstance(node.target, OpOverload):
            return []
        returns_argument = any(result.alias_info is not None for result in schema_of(node.target).returns)
        return [value for value, _ in aliased_arguments(node)] if returns_argument else []

    def memory(self, node: Node) -> Node:
        """The representative of all values that share this value's memory."""
        while node in self._parent:
            node = self._parent[node]
        return node

    def _unite(self, node: Node, other: Node) -> None:
        mine, theirs = self.memory(node), self.memory(other)
        if mine is not theirs:
            self._parent[mine] = theirs
            self._writes.setdefault(theirs, []).extend(self._writes.pop(mine, []))
