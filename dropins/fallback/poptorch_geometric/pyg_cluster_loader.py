"""The loaders of `poptorch_geometric.cluster_loader` under their second name."""

from __future__ import annotations

from poptorch_geometric.cluster_loader import FixedSizeClusterLoader

__all__ = ["FixedSizeClusterLoader"]
