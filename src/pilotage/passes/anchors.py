"""Anchors: inner values that a program returns with its outputs."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import replace

import torch
from torch.fx import Graph, GraphModule, Node

from pilotage.errors import CaptureError
from pilotage.passes.floating_point_exceptions import watched
from pilotage.program.graphs.labels import EXCEPTIONS, labels_of, updated
from pilotage.program.graphs.origins import scoped_name
from pilotage.program.program import Action, Program

aten = torch.ops.aten


def tensor_names(program: Program) -> list[str]:
    """Everything that can be anchored: labels first, then operations by their scoped names."""
    nodes = _nodes(program)
    labels = [name for node in nodes for name in labels_of(node)]
    return [*labels, *_updated_here(program), *(scoped_name(node) for node in nodes if node.op == "call_function")]


def unknown_name(name: str, known: Sequence[str]) -> str:
    """The error for an unknown tensor name; it lists only the closest names."""
    closest = difflib.get_close_matches(name, known, n=5, cutoff=0.0)
    return f"The program has no tensor named {name!r}. The closest of its {len(known)} names are: {', '.join(closest)}."


def anchored(program: Program, names: Sequence[str]) -> Program:
    """The program with these values after its outputs, each as it is at that point of the step.

    Flags of floating-point exceptions must come last.
    """
    if not names:
        return program
    action, computation = next(iter(program.computations.items()))
    if computation.graph is None:
        raise CaptureError(
            f"{', '.join(names)} cannot be anchored in the eager tier, which has no graph. Use the graph tier."
        )
    graph, ranks = _with_outputs(computation.graph, program, [name for name in names if name != EXCEPTIONS])
    operations: tuple[str, ...] = ()
    if EXCEPTIONS in names:
        graph, operations = watched(graph)
        ranks = (*ranks, 1)
    return replace(
        program,
        computations={**program.computations, action: replace(computation, graph=graph)},
        anchors=tuple(names),
        output_ranks=ranks,
        watched_operations=operations,
    )


def _with_outputs(source: GraphModule, program: Program, names: Sequence[str]) -> tuple[GraphModule, tuple[int, ...]]:
    graph = Graph()
    copies: dict[Node, Node] = {}
    graph.graph_copy(source.graph, copies)
    last = next(node for node in source.graph.nodes if node.op == "output")
    by_name = _by_name(source.graph.nodes)
    ranks = [_rank(node) for node in last.args[0]]
    anchors = []
    for name in names:
        if name in _updated_here(program):
            old = by_name[name.removeprefix(updated(""))]
            anchors.append(graph.call_function(aten.clone.default, (copies[old],)))
        elif name in by_name:
            old = by_name[name]
            # Later writes to the value do not change the copy.
            with graph.inserting_after(_end_of_arguments(copies[old])):
                anchors.append(graph.call_function(aten.clone.default, (copies[old],)))
        else:
            raise CaptureError(unknown_name(name, tensor_names(program)))
        ranks.append(_rank(old))
        anchors[-1].meta["val"] = old.meta["val"]
    results = [copies[node] for node in last.args[0]]
    graph.output([*results, *anchors])
    return GraphModule(source, graph), tuple(ranks)


def _updated_here(program: Program) -> list[str]:
    """Labels of updated weights, if one graph goes from inputs to new weights."""
    return [updated(name) for name in program.layout.trained] if Action.TRAIN in program.computations else []


def _nodes(program: Program) -> list[Node]:
    graph = next(iter(program.computations.values())).graph
    return [] if graph is None else list(graph.graph.nodes)


def _by_name(nodes: Iterable[Node]) -> dict[str, Node]:
    known = list(nodes)
    return {
        **{node.name: node for node in known if node.op == "call_function"},
        **{scoped_name(node): node for node in known if node.op == "call_function"},
        **{name: node for node in known for name in labels_of(node)},
    }


def _end_of_arguments(node: Node) -> Node:
    """The node after which a copy can be inserted: all arguments of a graph come first."""
    while node.op == "placeholder" and node.next.op == "placeholder":
        node = node.next
    return node


def _rank(node: Node) -> int:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        raise CaptureError(f"{node.name} is not a single tensor and cannot be anchored. Anchor one of its items.")
    return value.dim()
