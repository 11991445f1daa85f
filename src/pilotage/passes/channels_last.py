"""The same program in channels-last memory format, which is often faster for convolutions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch.fx import GraphModule

from pilotage.program.graphs.rewrites import copy_graph
from pilotage.program.layout import Slot, StateLayout
from pilotage.program.program import Action, Computation, Program
from pilotage.program.specification import TensorSpec

aten = torch.ops.aten

_CONVOLUTIONS = frozenset({aten.convolution.default, aten.convolution_backward.default})
_STRIDE_DEPENDENT = frozenset(
    {
        aten.as_strided.default,
        aten.as_strided_.default,
        aten.empty_strided.default,
        aten.new_empty_strided.default,
        aten.view_as_complex.default,
    }
)
_CONTIGUOUS_ARGUMENTS = {aten.native_group_norm.default: (0,), aten.native_group_norm_backward.default: (0, 1)}
"""Kernels that assume contiguous arguments and silently give wrong results otherwise; autograd ensures it."""


def has_channels_last(program: Program) -> bool:
    """Whether a program has convolutions, and nothing that depends on strides."""
    graphs = [computation.graph for computation in program.computations.values()]
    if (
        program.layout.replica_groups
        or Action.FORWARD in program.computations
        or any(graph is None for graph in graphs)
    ):
        return False
    targets = {node.target for graph in graphs if graph is not None for node in graph.graph.nodes}
    return bool(targets & _CONVOLUTIONS) and not targets & _STRIDE_DEPENDENT


def in_channels_last(program: Program) -> Program:
    """The program with four-dimensional weights and inputs in channels-last format."""
    layout = _layout(program.layout)
    computations = {
        action: _computation(computation, program, layout) for action, computation in program.computations.items()
    }
    return replace(program, layout=layout, computations=computations)


def _computation(computation: Computation, program: Program, layout: StateLayout) -> Computation:
    assert computation.graph is not None
    state = sum(len(layout.section(section)) for section in computation.sections)
    graph = copy_graph(computation.graph)
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    for position, node in enumerate(placeholders[state:]):
        specification = program.inputs[position]
        if len(specification.shape) == 4 and position not in program.written_inputs:
            _store_channels_last(graph, node, placeholders[-1])
    for node in list(graph.graph.nodes):
        for position in _CONTIGUOUS_ARGUMENTS.get(node.target, ()):
            _store_as_captured(graph, node, position)
    graph.recompile()
    return replace(computation, graph=graph)


def _store_channels_last(graph: GraphModule, node: torch.fx.Node, last: torch.fx.Node) -> None:
    with graph.graph.inserting_after(last):
        stored = graph.graph.call_function(aten.clone.default, (node,), {"memory_format": torch.channels_last})
    node.replace_all_uses_with(stored, delete_user_cb=lambda user: user is not stored)


def _store_as_captured(graph: GraphModule, node: torch.fx.Node, position: int) -> None:
    given = node.args[position]
    with graph.graph.inserting_before(node):
        stored = graph.graph.call_function(aten.contiguous.default, (given,))
    node.update_arg(position, stored)


def _layout(layout: StateLayout) -> StateLayout:
    parameters = {name: _stored(specification) for name, specification in layout.parameters.items()}
    slots: Mapping[Slot, TensorSpec] = {slot: _stored(specification) for slot, specification in layout.slots.items()}
    return replace(layout, parameters=parameters, slots=slots)


def _stored(specification: TensorSpec) -> TensorSpec:
    if len(specification.shape) != 4:
        return specification
    meta = specification.empty(torch.device("meta"))
    return TensorSpec.of(torch.empty_like(meta, memory_format=torch.channels_last))
