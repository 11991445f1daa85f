"""Outputs of a program that are the same in every run."""

from __future__ import annotations

import operator

import torch
from torch._ops import OpOverload
from torch.fx import GraphModule, Node


def constant_outputs(graph: GraphModule) -> tuple[int, ...]:
    """Which outputs depend neither on arguments nor on random numbers, nor on anything outside of torch."""
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
                    # A write through a view changes what the view was taken from.
                    varying.update(_ancestors(node))
    return varying


def _is_source(node: Node) -> bool:
    if node.op != "call_function" or node.target is operator.getitem:
        return node.op == "placeholder"
    is_torchs = isinstance(node.target, OpOverload) and node.target.namespace in ("aten", "prims", "prim")
    return not is_torchs or torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def _writes(node: Node) -> bool:
    return isinstance(node.target, OpOverload) and bool(node.target._schema.is_mutable)


def _ancestors(node: Node) -> set[Node]:
    found: set[Node] = set()
    waiting = [node]
    while waiting:
        for above in waiting.pop().all_input_nodes:
            if above not in found:
                found.add(above)
                waiting.append(above)
    return found
