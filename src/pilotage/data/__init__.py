"""Batches for host calls: loading, sharding among processes, and prefetching."""

from __future__ import annotations

from pilotage.data.bulk import BulkDataset
from pilotage.data.epochs import Epochs
from pilotage.data.loader import Loader
from pilotage.data.partition import Shard
from pilotage.data.prefetcher import Prefetcher
from pilotage.data.sharing_mode import SharingMode

__all__ = ["BulkDataset", "Epochs", "Loader", "Prefetcher", "Shard", "SharingMode"]
