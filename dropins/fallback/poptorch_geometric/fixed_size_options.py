"""How large every batch is, and what happens to graphs that do not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from itertools import islice
from typing import Any, TypeAlias

__all__ = ["FixedSizeOptions", "FixedSizeStrategy", "OverSizeStrategy", "Sizes", "sizes_of"]

EdgeType: TypeAlias = tuple[str, str, str]
"""Where edges begin, what they mean, and where they end."""


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
    """The numbers of nodes, edges and graphs of every batch, padding included; at least one graph is padding.

    Numbers of nodes and edges may be dictionaries with one number for each type of a heterogeneous graph. A single
    number holds for every type.
    """

    def __init__(
        self,
        num_nodes: int | Mapping[str, int],
        num_edges: int | Mapping[EdgeType, int] | None = None,
        num_graphs: int = 2,
        node_pad_value: float | None = None,
        edge_pad_value: float | None = None,
        graph_pad_value: float | None = None,
        pad_graph_defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.num_nodes = num_nodes if isinstance(num_nodes, int) else dict(num_nodes)
        self.num_edges = _edges_between(self.num_nodes) if num_edges is None else _own(num_edges)
        self.num_graphs = num_graphs
        self.node_pad_value = 0.0 if node_pad_value is None else node_pad_value
        self.edge_pad_value = 0.0 if edge_pad_value is None else edge_pad_value
        self.graph_pad_value = 0.0 if graph_pad_value is None else graph_pad_value
        self.pad_graph_defaults = dict(pad_graph_defaults or {})
        if min(_numbers(self.num_nodes)) < 1 or min(_numbers(self.num_edges)) < 0 or self.num_graphs < 2:
            raise ValueError(
                f"{self} is too small. A batch needs at least 1 node and 2 graphs, because one of them is padding."
            )

    @property
    def total_num_nodes(self) -> int:
        """The nodes of a batch, of all types."""
        return sum(_numbers(self.num_nodes))

    @property
    def total_num_edges(self) -> int:
        """The edges of a batch, of all types."""
        return sum(_numbers(self.num_edges))

    def is_hetero(self) -> bool:
        """Whether there is a number for each type of nodes or edges."""
        return not (isinstance(self.num_nodes, int) and isinstance(self.num_edges, int))

    def nodes_of(self, kind: str | None) -> int:
        """How many nodes of a type a batch has; None stands for the only type."""
        return _number(self.num_nodes, kind, "nodes")

    def edges_of(self, kind: EdgeType | None) -> int:
        """How many edges of a type a batch has; None stands for the only type."""
        return _number(self.num_edges, kind, "edges")

    def hold(self, sizes: Sizes) -> bool:
        """Whether graphs with these sizes fit into a batch, beside one node of padding of each type."""
        return all(count < self.nodes_of(kind) for kind, count in sizes.nodes.items()) and all(
            count <= self.edges_of(kind) for kind, count in sizes.edges.items()
        )

    @classmethod
    def from_dataset(cls, dataset: Iterable[Any], batch_size: int, sample_limit: int | None = None) -> FixedSizeOptions:
        """Sizes into which any ``batch_size - 1`` graphs of the data fit; the last graph of a batch is padding."""
        found = [sizes_of(graph) for graph in islice(iter(dataset), sample_limit)]
        real = max(1, batch_size - 1)

        def largest(counts: list[Counter[Any]]) -> Any:
            sums = {kind: sum(sorted((each[kind] for each in counts), reverse=True)[:real]) for kind in counts[0]}
            return _as_given({kind: total + 1 for kind, total in sums.items()})

        nodes, edges = largest([each.nodes for each in found]), largest([each.edges for each in found])
        return cls(nodes, edges, max(2, batch_size))

    @classmethod
    def from_loader(cls, loader: Iterable[Any], sample_limit: int | None = None) -> FixedSizeOptions:
        """Sizes into which each batch of a loader fits, with one graph more for padding."""
        batches = list(islice(iter(loader), sample_limit))
        found = [sizes_of(batch) for batch in batches]

        def largest(counts: list[Counter[Any]]) -> Any:
            return _as_given({kind: max(each[kind] for each in counts) + 1 for kind in counts[0]})

        nodes, edges = largest([each.nodes for each in found]), largest([each.edges for each in found])
        return cls(nodes, edges, 1 + max(getattr(batch, "num_graphs", 1) for batch in batches))

    def to_dict(self) -> dict[str, Any]:
        """The options by name."""
        return dict(vars(self))

    def __repr__(self) -> str:
        return f"FixedSizeOptions(num_nodes={self.num_nodes}, num_edges={self.num_edges}, num_graphs={self.num_graphs})"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many nodes and edges of each type there are; None is the type of a graph with only one."""

    nodes: Counter[Any] = field(default_factory=Counter)
    edges: Counter[Any] = field(default_factory=Counter)

    def __add__(self, other: Sizes) -> Sizes:
        nodes, edges = self.nodes.copy(), self.edges.copy()
        nodes.update(other.nodes)
        edges.update(other.edges)
        return Sizes(nodes, edges)


def sizes_of(graph: Any) -> Sizes:
    """The sizes of a graph or batch."""
    if not hasattr(graph, "node_types"):
        return Sizes(Counter({None: int(graph.num_nodes or 0)}), Counter({None: int(graph.num_edges)}))
    return Sizes(
        Counter({kind: int(graph[kind].num_nodes or 0) for kind in graph.node_types}),
        Counter({kind: int(graph[kind].num_edges) for kind in graph.edge_types}),
    )


def _edges_between(nodes: int | dict[str, int]) -> int:
    """Enough edges to join every two nodes."""
    largest = max(_numbers(nodes))
    return largest * (largest - 1)


def _own(numbers: int | Mapping[Any, int]) -> int | dict[Any, int]:
    return numbers if isinstance(numbers, int) else dict(numbers)


def _numbers(given: int | dict[Any, int]) -> list[int]:
    return [given] if isinstance(given, int) else list(given.values())


def _number(given: int | dict[Any, int], kind: Any, what: str) -> int:
    if isinstance(given, int):
        return given
    if kind is None:
        raise ValueError(f"FixedSizeOptions has {what} for each of {list(given)}, but the graph has only one type.")
    if kind not in given:
        raise ValueError(f"FixedSizeOptions has no number of {what} of the type {kind!r}, only of {list(given)}.")
    return given[kind]


def _as_given(numbers: dict[Any, int]) -> int | dict[Any, int]:
    return numbers.get(None, numbers)
