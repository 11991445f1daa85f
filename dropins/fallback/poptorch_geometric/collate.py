"""Graphs become batches of fixed size: what is missing is padded, and masks say what is real."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, HeteroData

from poptorch_geometric.fixed_size_options import FixedSizeOptions, Sizes, sizes_of
from poptorch_geometric.trimming import trimmed

__all__ = ["CombinedBatchingCollater", "FixedSizeCollater"]


class FixedSizeCollater:
    """Makes a batch with a fixed number of nodes, edges and graphs; padding comes behind the real graphs.

    With several types of nodes and edges, each type has its number and its mask.
    """

    def __init__(
        self,
        fixed_size_options: FixedSizeOptions,
        add_masks_to_batch: bool = False,
        trim_nodes: bool = False,
        trim_edges: bool = False,
        follow_batch: Sequence[str] | None = None,
        exclude_keys: Iterable[str] | None = None,
    ) -> None:
        self._sizes = fixed_size_options
        self._adds_masks = add_masks_to_batch
        self._trims_nodes = trim_nodes
        self._trims_edges = trim_edges
        self._follow_batch = list(follow_batch or [])
        self._exclude_keys = list(exclude_keys or [])

    def __call__(self, graphs: Sequence[Any]) -> Batch:
        """The batch of these graphs."""
        sizes, real = self._sizes, list(graphs)
        if len(real) > sizes.num_graphs - 1:
            raise RuntimeError(
                f"{len(real)} graphs do not fit into a batch of {sizes.num_graphs}, one of which is padding. Give "
                f"FixedSizeOptions num_graphs={len(real) + 1}, or load fewer graphs."
            )
        real = trimmed(real, sizes, nodes=self._trims_nodes, edges=self._trims_edges)
        filled = sum(map(sizes_of, real), Sizes())
        empty = [self._padding(real[0], Sizes()) for _ in range(sizes.num_graphs - len(real) - 1)]
        graphs = [*real, self._padding(real[0], self._missing(filled)), *empty]
        batch = Batch.from_data_list(graphs, self._follow_batch, self._exclude_keys)
        if self._adds_masks:
            for kind, count in filled.nodes.items():
                _part(batch, kind).nodes_mask = _mask(count, sizes.nodes_of(kind))
            for kind, count in filled.edges.items():
                _part(batch, kind).edges_mask = _mask(count, sizes.edges_of(kind))
            batch.graphs_mask = _mask(len(real), sizes.num_graphs)
        return batch

    def _missing(self, filled: Sizes) -> Sizes:
        missing = Sizes()
        missing.nodes.update({kind: self._sizes.nodes_of(kind) - count for kind, count in filled.nodes.items()})
        missing.edges.update({kind: self._sizes.edges_of(kind) - count for kind, count in filled.edges.items()})
        return missing

    def _padding(self, like: Any, sizes: Sizes) -> Any:
        """A graph of these sizes with the attributes of another."""
        graph = type(like)()
        for kind, store in _stores(like):
            part, nodes, edges = _part(graph, kind), sizes.nodes[kind], sizes.edges[kind]
            for key, value in store.items():
                if key == "edge_index":
                    part[key] = torch.zeros(2, edges, dtype=value.dtype)
                elif key != "num_nodes":
                    part[key] = self._padded(like, store, key, nodes, edges)
            if kind in sizes_of(like).nodes:
                part.num_nodes = nodes
        return graph

    def _padded(self, like: Any, store: Any, key: str, nodes: int, edges: int) -> Any:
        value = store[key]
        if not isinstance(value, Tensor):
            return self._sizes.pad_graph_defaults.get(key, value)
        # What belongs to a whole graph of several types is in a store that has neither nodes nor edges.
        has_parts = hasattr(store, "is_node_attr")
        dimension = like.__cat_dim__(key, value, store)
        if has_parts and store.is_node_attr(key):
            return _filled(value, nodes, dimension, self._sizes.node_pad_value)
        if has_parts and store.is_edge_attr(key):
            return _filled(value, edges, dimension, self._sizes.edge_pad_value)
        fill = self._sizes.pad_graph_defaults.get(key, self._sizes.graph_pad_value)
        return torch.full_like(value, fill) if not isinstance(fill, Tensor) else fill


class CombinedBatchingCollater:
    """Joins several batches of fixed size for one call: each tensor one after the other, along its first dimension."""

    def __init__(self, mini_batch_size: int, collater: FixedSizeCollater) -> None:
        self._size = mini_batch_size
        self._collater = collater

    def __call__(self, graphs: Sequence[Any]) -> Batch:
        """The batches of these graphs, joined."""
        parts = [graphs[start : start + self._size] for start in range(0, len(graphs), self._size)]
        batches = [self._collater(part) for part in parts]
        for first, *others in zip(*(batch.stores for batch in batches), strict=True):
            for key, value in list(first.items()):
                if isinstance(value, Tensor):
                    first[key] = torch.cat([value, *(store[key] for store in others)])
        return batches[0]


def _stores(graph: Any) -> Iterator[tuple[Any, Any]]:
    """The parts of a graph and their types; None is that of the graph as a whole."""
    yield None, graph.stores[0]
    if isinstance(graph, HeteroData):
        yield from ((kind, graph[kind]) for kind in (*graph.node_types, *graph.edge_types))


def _part(graph: Any, kind: Any) -> Any:
    return graph if kind is None else graph[kind]


def _filled(value: Tensor, size: int, dimension: Any, fill: float) -> Tensor:
    shape = list(value.shape)
    shape[dimension or 0] = size
    return value.new_full(shape, fill)


def _mask(real: int, size: int) -> Tensor:
    return torch.arange(size) < real
