"""Pads the subgraphs that a loader of PyTorch Geometric samples from one large graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from poptorch_geometric.collate import FixedSizeCollater
from poptorch_geometric.fixed_size_options import FixedSizeOptions, OverSizeStrategy

__all__ = ["FixedSizeSubgraphs"]


class FixedSizeSubgraphs:
    """Goes through another loader, and gives every subgraph a fixed size and masks."""

    def __init__(
        self,
        loader: Iterable[Any],
        fixed_size_options: FixedSizeOptions,
        over_size_strategy: OverSizeStrategy = OverSizeStrategy.Error,
        add_pad_masks: bool = True,
        exclude_keys: Iterable[str] | None = None,
    ) -> None:
        self._loader = loader
        self._collater = FixedSizeCollater(
            fixed_size_options,
            add_masks_to_batch=add_pad_masks,
            trim_nodes=over_size_strategy.trims_nodes,
            trim_edges=over_size_strategy.trims_edges,
            exclude_keys=exclude_keys,
        )

    def __iter__(self) -> Iterator[Any]:
        for subgraph in self._loader:
            yield self._collater([subgraph])

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]
