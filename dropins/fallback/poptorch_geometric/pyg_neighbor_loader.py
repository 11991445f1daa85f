"""The loaders of `poptorch_geometric.neighbor_loader` under their second name."""

from __future__ import annotations

from poptorch_geometric.neighbor_loader import FixedSizeNeighborLoader

__all__ = ["FixedSizeNeighborLoader"]
