"""The loaders of `poptorch_geometric.dataloader` under their second name."""

from __future__ import annotations

from poptorch_geometric.dataloader import CustomFixedSizeDataLoader, FixedSizeDataLoader

__all__ = ["CustomFixedSizeDataLoader", "FixedSizeDataLoader"]
