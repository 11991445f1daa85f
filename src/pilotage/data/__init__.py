"""Batches for the host's calls: loading, dividing among processes, and loading ahead of time."""

from __future__ import annotations

from pilotage.data.asynchronous import Prefetcher
from pilotage.data.bulk import BulkDataset
from pilotage.data.epochs import Epochs
from pilotage.data.loader import Loader
from pilotage.data.partition import Share
from pilotage.data.sharing import Sharing

__all__ = ["BulkDataset", "Epochs", "Loader", "Prefetcher", "Share", "Sharing"]
