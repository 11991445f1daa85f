"""How large every batch is, and what happens to graphs that do not fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, IntEnum
from itertools import islice
from typing import Any

__all__ = ["FixedSizeOptions", "FixedSizeStrategy", "OverSizeStrategy"]


class FixedSizeStrategy(IntEnum):
    """How many graphs go into a batch."""

    PadToMax = 0
    """Always the same number of graphs."""
    StreamPack = 1
    """As many as fit, in the order of the data."""


class OverSizeStrategy(Enum):
    """What to do if graphs are larger than a batch."""

    Error = 0
    TrimNodes = 1
    TrimEdges = 2
    TrimNodesAndEdges = 3

    @property
    def trims_nodes(self) -> bool:
        """Whether nodes are left out."""
        return self in (OverSizeStrategy.TrimNodes, OverSizeStrategy.TrimNodesAndEdges)

    @property
    def trims_edges(self) -> bool:
        """Whether edges are left out."""
        return self in (OverSizeStrategy.TrimEdges, OverSizeStrategy.TrimNodesAndEdges)


class FixedSizeOptions:
    """The numbers of nodes, edges and graphs of every batch, padding included; at least one graph is padding."""

    def __init__(
        self,
        num_nodes: int,
        num_edges: int | None = None,
        num_graphs: int = 2,
        node_pad_value: float | None = None,
        edge_pad_value: float | None = None,
        graph_pad_value: float | None = None,
        pad_graph_defaults: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(num_nodes, int):
            raise NotImplementedError(
                f"num_nodes is {num_nodes!r}. Sizes for each type of node are not supported: convert the data with "
                "HeteroData.to_homogeneous(), and give one number."
            )
        self.num_nodes = num_nodes
        self.num_edges = num_nodes * (num_nodes - 1) if num_edges is None else num_edges
        self.num_graphs = num_graphs
        self.node_pad_value = 0.0 if node_pad_value is None else node_pad_value
        self.edge_pad_value = 0.0 if edge_pad_value is None else edge_pad_value
        self.graph_pad_value = 0.0 if graph_pad_value is None else graph_pad_value
        self.pad_graph_defaults = dict(pad_graph_defaults or {})
        if self.num_nodes < 1 or self.num_edges < 0 or self.num_graphs < 2:
            raise ValueError(
                f"{self} is too small. A batch needs at least 1 node and 2 graphs, because one of them is padding."
            )

    @property
    def total_num_nodes(self) -> int:
        """The nodes of a batch."""
        return self.num_nodes

    @property
    def total_num_edges(self) -> int:
        """The edges of a batch."""
        return self.num_edges

    def is_hetero(self) -> bool:
        """Whether there are several types of nodes: never."""
        return False

    @classmethod
    def from_dataset(cls, dataset: Iterable[Any], batch_size: int, sample_limit: int | None = None) -> FixedSizeOptions:
        """Sizes into which any ``batch_size - 1`` graphs of the data fit; the last graph of a batch is padding."""
        graphs = list(islice(iter(dataset), sample_limit))
        nodes, edges = (sorted(sizes, reverse=True) for sizes in zip(*map(_sizes, graphs), strict=True))
        real = max(1, batch_size - 1)
        return cls(sum(nodes[:real]) + 1, sum(edges[:real]) + 1, max(2, batch_size))

    @classmethod
    def from_loader(cls, loader: Iterable[Any], sample_limit: int | None = None) -> FixedSizeOptions:
        """Sizes into which each batch of a loader fits, with one graph more for padding."""
        batches = list(islice(iter(loader), sample_limit))
        nodes, edges = (max(sizes) for sizes in zip(*map(_sizes, batches), strict=True))
        return cls(nodes + 1, edges + 1, 1 + max(getattr(batch, "num_graphs", 1) for batch in batches))

    def to_dict(self) -> dict[str, Any]:
        """The options by name."""
        return dict(vars(self))

    def __repr__(self) -> str:
        return f"FixedSizeOptions(num_nodes={self.num_nodes}, num_edges={self.num_edges}, num_graphs={self.num_graphs})"


def _sizes(graph: Any) -> tuple[int, int]:
    return int(graph.num_nodes), int(graph.num_edges)
