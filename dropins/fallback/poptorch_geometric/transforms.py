"""Transforms of single graphs, for data sets of PyTorch Geometric."""

from __future__ import annotations

from typing import Any

from torch_geometric.transforms import BaseTransform

from poptorch_geometric.collate import FixedSizeCollater
from poptorch_geometric.fixed_size_options import FixedSizeOptions, OverSizeStrategy

__all__ = ["PadToFixedSize"]


class PadToFixedSize(BaseTransform):  # type: ignore[misc]
    """Pads a graph, such as the only one of a data set for node classification, and adds masks of what is real."""

    def __init__(
        self, fixed_size_options: FixedSizeOptions, over_size_strategy: OverSizeStrategy = OverSizeStrategy.Error
    ) -> None:
        self._collater = FixedSizeCollater(
            fixed_size_options,
            add_masks_to_batch=True,
            trim_nodes=over_size_strategy.trims_nodes,
            trim_edges=over_size_strategy.trims_edges,
        )

    def forward(self, data: Any) -> Any:
        """The padded graph, as a batch of one."""
        return self._collater([data])
