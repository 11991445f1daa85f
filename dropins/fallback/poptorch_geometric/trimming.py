"""Leaves nodes and edges out of graphs that are too large for a batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch_geometric.data import Data, HeteroData

from poptorch_geometric.fixed_size_options import FixedSizeOptions, Sizes, sizes_of

__all__ = ["trimmed"]


def trimmed(graphs: Sequence[Data], sizes: FixedSizeOptions, *, nodes: bool, edges: bool) -> list[Data]:
    """The graphs, with at most as many nodes and edges as a batch has besides one node of padding.

    The last nodes and edges of the largest graph are left out first. Raises where something has to be left out and may
    not be.
    """
    found = list(graphs)
    if isinstance(found[0], HeteroData):
        _check(found, sizes)
        return found
    room = sizes.nodes_of(None) - 1
    for number, size in _reduced([int(graph.num_nodes or 0) for graph in found], room, "nodes", allowed=nodes):
        found[number] = found[number].subgraph(torch.arange(size))
    for number, size in _reduced([graph.num_edges for graph in found], sizes.edges_of(None), "edges", allowed=edges):
        found[number] = found[number].edge_subgraph(torch.arange(size))
    return found


def _check(graphs: Sequence[HeteroData], sizes: FixedSizeOptions) -> None:
    """Raise if graphs with several types are too large: which nodes to leave out depends on the types around them."""
    total = sum(map(sizes_of, graphs), Sizes())
    for kind, count in total.nodes.items():
        if count >= sizes.nodes_of(kind):
            raise RuntimeError(_too_large(count, f"nodes of the type {kind!r}", sizes.nodes_of(kind) - 1))
    for kind, count in total.edges.items():
        if count > sizes.edges_of(kind):
            raise RuntimeError(_too_large(count, f"edges of the type {kind!r}", sizes.edges_of(kind)))


def _too_large(count: int, what: str, room: int) -> str:
    return (
        f"The graphs of a batch have {count} {what}, but only {room} fit. Enlarge FixedSizeOptions, or load "
        "fewer graphs; graphs with several types are not trimmed."
    )


def _reduced(sizes: list[int], room: int, what: str, *, allowed: bool) -> list[tuple[int, int]]:
    """The graphs that have to become smaller, with their new sizes."""
    excess, present = sum(sizes) - room, list(sizes)
    if excess <= 0:
        return []
    if not allowed:
        raise RuntimeError(
            f"The graphs of a batch have {sum(sizes)} {what}, but only {room} fit. Enlarge FixedSizeOptions, "
            f"load fewer graphs, or leave {what} out: over_size_strategy=OverSizeStrategy.Trim{what.capitalize()}."
        )
    for _ in range(excess):
        present[present.index(max(present))] -= 1
    return [(number, size) for number, size in enumerate(present) if size != sizes[number]]
