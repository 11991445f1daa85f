"""Pads the subgraphs that a loader of PyTorch Geometric samples from one large graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import poptorch
from poptorch._options.execution import batching_of
from poptorch._utils import combined_batch_generator
from poptorch_geometric.collate import FixedSizeCollater
from poptorch_geometric.fixed_size_options import FixedSizeOptions, OverSizeStrategy

__all__ = ["FixedSizeSubgraphs"]


class FixedSizeSubgraphs:
    """Goes through another loader, and gives every subgraph a fixed size and masks.

    With PopTorch's ``options`` each item has the batches of one call.
    """

    def __init__(
        self,
        loader: Iterable[Any],
        fixed_size_options: FixedSizeOptions,
        over_size_strategy: OverSizeStrategy = OverSizeStrategy.Error,
        add_pad_masks: bool = True,
        exclude_keys: Iterable[str] | None = None,
        options: poptorch.Options | None = None,
    ) -> None:
        self._loader = loader
        self._collater = FixedSizeCollater(
            fixed_size_options,
            add_masks_to_batch=add_pad_masks,
            trim_nodes=over_size_strategy.trims_nodes,
            trim_edges=over_size_strategy.trims_edges,
            exclude_keys=exclude_keys,
        )
        self._batches_in_call = 1
        if options is not None:
            options._freeze()
            self._batches_in_call = batching_of(options).micro_batches_per_call

    def __iter__(self) -> Iterator[Any]:
        padded = (self._collater([subgraph]) for subgraph in self._loader)
        return padded if self._batches_in_call == 1 else combined_batch_generator(padded, self._batches_in_call)

    def __len__(self) -> int:
        return len(self._loader) // self._batches_in_call  # type: ignore[arg-type]
