"""Offloads values of forward to host memory until backward needs them."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from pilotage.program.graphs.aliases import Memories
from pilotage.program.graphs.forward_marks import backward_of, is_forward, last_use_of_forward, unmarked
from pilotage.program.graphs.rewrites import copy_graph
from pilotage.program.program import Computation, Program
from pilotage.torch_private import TO_COPY, OpOverload

_HOST = torch.device("cpu")
_copy_to = TO_COPY


def offloaded(program: Program, minimum: int) -> Program:
    """The program with values of at least ``minimum`` elements moved to the host until backward needs them."""
    computations = {action: _computation(each, minimum) for action, each in program.computations.items()}
    return replace(program, computations=computations)


def _computation(computation: Computation, minimum: int) -> Computation:
    if computation.graph is None:
        return computation
    copy = copy_graph(computation.graph)
    _Offloading(copy, minimum).write()
    copy.graph.lint()
    copy.recompile()
    return replace(computation, graph=copy)


class _Offloading:
    """Adds copies to the host and back to a graph."""

    def __init__(self, graph: GraphModule, minimum: int) -> None:
        self._graph = graph.graph
        self._memories = Memories(self._graph)
        self._minimum = minimum
        self._results = set(self._graph.output_node().all_input_nodes)
        self._backward = backward_of(self._graph)
        self._last = last_use_of_forward(self._graph)
        self._returned: dict[Node, Node] = {}

    def write(self) -> None:
        """Let backward use the copies from the host."""
        for node in self._backward:
            for value in [each for each in node.all_input_nodes if is_forward(each)]:
                if self._can_be_offloaded(_base(value)):
                    with self._graph.inserting_before(node):
                        back = self._copied_back(value)
                    node.replace_input_with(value, back)

    def _can_be_offloaded(self, base: Node) -> bool:
        """Whether a value of forward is large enough, and unchanged until backward."""
        value = base.meta.get("val")
        if not is_forward(base) or base in self._results or not isinstance(value, Tensor):
            return False
        is_dense = torch.ops.aten.is_non_overlapping_and_dense.default(value)
        is_here = value.device.type != _HOST.type
        written = self._memories.written(base, self._memories.position[base] + 1, self._last)
        return is_dense and is_here and value.numel() >= self._minimum and not written

    def _copied_back(self, value: Node) -> Node:
        """A value for backward: a copy from the host, or the same view of one."""
        if value in self._returned:
            return self._returned[value]
        if _base(value) is value:
            with self._graph.inserting_after(value):
                waiting = self._graph.call_function(_copy_to, (value,), {"device": _HOST})
            back = self._graph.call_function(_copy_to, (waiting,), {"device": value.meta["val"].device})
        else:
            source = value.args[0]
            assert isinstance(source, Node)
            before = self._copied_back(source)
            back = self._graph.node_copy(value, lambda _: before)
        back.meta = unmarked(value)
        self._returned[value] = back
        return back


def _base(node: Node) -> Node:
    """The base of a view."""
    while _is_view(node) and isinstance(node.args[0], Node) and node.all_input_nodes == [node.args[0]]:
        node = node.args[0]
    return node


def _is_view(node: Node) -> bool:
    return isinstance(node.target, OpOverload) and (
        node.target.is_view or node.target is torch.ops.aten.reshape.default
    )
