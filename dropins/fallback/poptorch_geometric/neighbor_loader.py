"""Neighbourhoods of the nodes of one large graph, in batches of fixed size."""

from __future__ import annotations

from typing import Any

import poptorch
from poptorch_geometric.fixed_size_options import FixedSizeOptions, OverSizeStrategy
from poptorch_geometric.subgraphs import FixedSizeSubgraphs

__all__ = ["FixedSizeNeighborLoader"]


class FixedSizeNeighborLoader(FixedSizeSubgraphs):
    """PyTorch Geometric's NeighborLoader with padded batches; sampling needs its pyg-lib or torch-sparse."""

    def __init__(
        self,
        data: Any,
        num_neighbors: Any,
        fixed_size_options: FixedSizeOptions,
        batch_size: int = 1,
        over_size_strategy: OverSizeStrategy = OverSizeStrategy.Error,
        add_pad_masks: bool = True,
        options: poptorch.Options | None = None,
        **kwargs: Any,
    ) -> None:
        from torch_geometric.loader import NeighborLoader

        loader = NeighborLoader(data, num_neighbors, batch_size=batch_size, **kwargs)
        super().__init__(loader, fixed_size_options, over_size_strategy, add_pad_masks, options=options)
