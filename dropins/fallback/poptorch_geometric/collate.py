"""Graphs become batches of fixed size: what is missing is padded, and masks say what is real."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from poptorch_geometric.fixed_size_options import FixedSizeOptions
from poptorch_geometric.trimming import trimmed

__all__ = ["CombinedBatchingCollater", "FixedSizeCollater"]


class FixedSizeCollater:
    """Makes a batch with a fixed number of nodes, edges and graphs; padding comes behind the real graphs."""

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

    def __call__(self, graphs: Sequence[Data]) -> Batch:
        """The batch of these graphs."""
        sizes, real = self._sizes, list(graphs)
        if len(real) > sizes.num_graphs - 1:
            raise RuntimeError(
                f"{len(real)} graphs do not fit into a batch of {sizes.num_graphs}, one of which is padding. Give "
                f"FixedSizeOptions num_graphs={len(real) + 1}, or load fewer graphs."
            )
        real = trimmed(real, sizes, nodes=self._trims_nodes, edges=self._trims_edges)
        nodes, edges = sum(map(_nodes, real)), sum(graph.num_edges for graph in real)
        padding = [self._padding(real[0], sizes.num_nodes - nodes, sizes.num_edges - edges)]
        padding += [self._padding(real[0], 0, 0) for _ in range(sizes.num_graphs - len(real) - 1)]
        batch = Batch.from_data_list([*real, *padding], self._follow_batch, self._exclude_keys)
        if self._adds_masks:
            batch.nodes_mask = _mask(nodes, sizes.num_nodes)
            batch.edges_mask = _mask(edges, sizes.num_edges)
            batch.graphs_mask = _mask(len(real), sizes.num_graphs)
        return batch

    def _padding(self, like: Data, nodes: int, edges: int) -> Data:
        """A graph of this size with the attributes of another."""
        graph = Data()
        for key, value in like.to_dict().items():
            if key == "edge_index":
                graph.edge_index = torch.zeros(2, edges, dtype=value.dtype)
            elif key != "num_nodes":
                graph[key] = self._padded(like, key, value, nodes, edges)
        graph.num_nodes = nodes
        return graph

    def _padded(self, like: Data, key: str, value: Any, nodes: int, edges: int) -> Any:
        if not isinstance(value, Tensor):
            return self._sizes.pad_graph_defaults.get(key, value)
        if like.is_node_attr(key):
            return _filled(value, nodes, like.__cat_dim__(key, value), self._sizes.node_pad_value)
        if like.is_edge_attr(key):
            return _filled(value, edges, like.__cat_dim__(key, value), self._sizes.edge_pad_value)
        fill = self._sizes.pad_graph_defaults.get(key, self._sizes.graph_pad_value)
        return torch.full_like(value, fill) if not isinstance(fill, Tensor) else fill


class CombinedBatchingCollater:
    """Joins several batches of fixed size for one call: each tensor one after the other, along its first dimension."""

    def __init__(self, mini_batch_size: int, collater: FixedSizeCollater) -> None:
        self._size = mini_batch_size
        self._collater = collater

    def __call__(self, graphs: Sequence[Data]) -> Batch:
        """The batches of these graphs, joined."""
        parts = [graphs[start : start + self._size] for start in range(0, len(graphs), self._size)]
        batches = [self._collater(part) for part in parts]
        first = batches[0]
        for key in list(first.keys()):
            if isinstance(first[key], Tensor):
                first[key] = torch.cat([batch[key] for batch in batches])
        return first


def _nodes(graph: Data) -> int:
    return int(graph.num_nodes or 0)


def _filled(value: Tensor, size: int, dimension: Any, fill: float) -> Tensor:
    shape = list(value.shape)
    shape[dimension or 0] = size
    return value.new_full(shape, fill)


def _mask(real: int, size: int) -> Tensor:
    return torch.arange(size) < real
