"""Recomputes values of forward in backward, instead of keeping them.

Forward marks a few values to keep. Values between them are freed after their last use in forward, and recomputed from
the kept ones right before backward needs them. What cannot be computed twice (random draws, values written to in
between) is kept. Results are bitwise identical.
"""

from __future__ import annotations

import operator
from dataclasses import replace
from functools import cache

import torch
from torch.fx import GraphModule, Node

from pilotage.options.choices import Recomputation
from pilotage.program.graphs.aliases import Memories, written_arguments
from pilotage.program.graphs.forward_marks import backward_of, is_forward, is_kept, last_use_of_forward, unmarked
from pilotage.program.graphs.origins import stage_of
from pilotage.program.graphs.rewrites import copy_graph, hidden_writes
from pilotage.program.program import Computation, Program
from pilotage.torch_private import OpOverload, overload_name, schema_of


def recomputed(program: Program, recomputation: Recomputation) -> Program:
    """The program that keeps only the marked values of forward, and recomputes the rest in backward."""
    if recomputation is Recomputation.NONE or not program.trains:
        return program
    by_stages = recomputation is Recomputation.STAGES
    computations = {a: _computation(computation, by_stages) for a, computation in program.computations.items()}
    return replace(program, computations=computations)


def _computation(computation: Computation, by_stages: bool) -> Computation:
    graph = computation.graph
    if graph is None or not _kept(graph, by_stages):
        return computation
    copy = copy_graph(graph)
    _Recomputing(copy, _kept(copy, by_stages)).write()
    copy.graph.lint()
    copy.recompile()
    return replace(computation, graph=copy)


def _kept(graph: GraphModule, by_stages: bool) -> set[Node]:
    return {node for node in graph.graph.nodes if is_kept(node) or (by_stages and _crosses_stages(node))}


def _crosses_stages(node: Node) -> bool:
    """Whether a stage of forward passes a value to another stage."""
    return is_forward(node) and any(is_forward(user) and stage_of(user) != stage_of(node) for user in node.users)


def _is_needed_elsewhere(node: Node) -> bool:
    """Whether another stage needs a value: recomputed here, it would come too late."""
    stages = {stage_of(user) for user in node.users if user.op == "call_function"}
    return not stages <= {stage_of(node), None}


class _Recomputing:
    """Adds the recomputation of values that are not kept to a graph."""

    def __init__(self, graph: GraphModule, kept: set[Node]) -> None:
        self._graph = graph.graph
        self._memories = Memories(self._graph)
        self._position = self._memories.position
        nodes = list(self._graph.nodes)
        self._backward = backward_of(self._graph)
        forward = [node for node in nodes if is_forward(node)]
        self._end_of_forward = max(map(self._position.__getitem__, forward), default=0)
        self._horizon = last_use_of_forward(self._graph)
        last_kept = max(map(self._position.__getitem__, kept))
        # After the last kept value backward begins at once, so recomputation would save nothing.
        candidates = [node for node in forward if self._position[node] < last_kept]
        self._again: dict[Node, Node | None] = dict.fromkeys(
            self._computable(candidates, kept.union(nodes[-1].all_input_nodes))
        )

    def write(self) -> None:
        """Let backward use the recomputed values."""
        for node in self._backward:
            needed = [value for value in node.all_input_nodes if value in self._again]
            for value in needed:
                node.replace_input_with(value, self._computed_again(value, node))

    def _computable(self, candidates: list[Node], kept: set[Node]) -> set[Node]:
        """The values that can be recomputed for backward."""
        found: set[Node] = set()
        for node in candidates:
            if node in kept or _is_needed_elsewhere(node):
                continue
            if _can_run_twice(node) and self._reads_the_same_twice(node, found):
                found.add(node)
        return found

    def _reads_the_same_twice(self, node: Node, computable: set[Node]) -> bool:
        """Whether an operation reads the same values in backward, and its result is not written to there."""
        position, written = self._position[node], self._memories.written
        if written(node, self._end_of_forward + 1, self._horizon):
            return False
        if node.target is operator.getitem and node.args[0] not in computable:
            # Recomputing one item of several results would keep all of them.
            return False
        for value in node.all_input_nodes:
            if value in computable:
                stale = written(value, self._position[value] + 1, position - 1)
            else:
                # The recomputation does not touch running statistics.
                stale = value not in hidden_writes(node) and written(value, position, self._horizon)
            if stale:
                return False
        return True

    def _computed_again(self, value: Node, user: Node) -> Node:
        """The recomputation of a value, inserted before the operation that needs it."""
        with self._graph.inserting_before(user):
            for node in sorted(self._missing(value), key=self._position.__getitem__):
                self._again[node] = self._copy(node)
        again = self._again[value]
        assert again is not None
        return again

    def _missing(self, value: Node) -> set[Node]:
        missing: set[Node] = set()
        waiting = [value]
        while waiting:
            node = waiting.pop()
            if node in missing or self._again.get(node, node) is not None:
                continue
            missing.add(node)
            waiting.extend(node.all_input_nodes)
        return missing

    def _copy(self, node: Node) -> Node:
        copy = self._graph.node_copy(node, lambda value: self._again.get(value) or value)
        copy.meta = unmarked(node)
        if hidden_writes(node):
            copy.args = (*copy.args[:3], None, None, *copy.args[5:])
        elif isinstance(node.target, OpOverload) and schema_of(node.target).is_mutable:
            twin = _without_writing(node.target)
            assert twin is not None
            copy.target = twin
        return copy


def _can_run_twice(node: Node) -> bool:
    if node.op != "call_function":
        return False
    target = node.target
    if target is operator.getitem:
        return True
    if not isinstance(target, OpOverload) or torch.Tag.nondeterministic_seeded in target.tags:
        return False
    if hidden_writes(node):
        return True
    if not schema_of(target).is_mutable:
        return not node.is_impure()
    return written_arguments(node) == [node.args[0]] and _without_writing(target) is not None


@cache
def _without_writing(operation: OpOverload) -> OpOverload | None:
    """The out-of-place variant of an in-place operation, or None."""
    namespace, _, name = schema_of(operation).name.partition("::")
    if not name.endswith("_") or name.endswith("__"):
        return None
    packet = getattr(getattr(torch.ops, namespace), name.removesuffix("_"), None)
    twin: OpOverload | None = getattr(packet, overload_name(operation), None)
    if twin is None or schema_of(twin).is_mutable or len(schema_of(twin).returns) != 1:
        return None
    ours, theirs = ([argument.name for argument in schema_of(each).arguments] for each in (operation, twin))
    return twin if ours == theirs else None
