"""PyTorch Geometric with fixed sizes: batches of graphs that always have the same shapes, as one program needs them.

Pilotage serves this package only if no other ``poptorch_geometric`` is installed. It needs PyTorch Geometric.
"""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("torch_geometric") is None:
    raise ModuleNotFoundError(
        "poptorch_geometric needs PyTorch Geometric, which is not installed. Run: pip install torch_geometric",
        name="torch_geometric",
    )

from poptorch_geometric.aggregation import set_aggregation_dim_size
from poptorch_geometric.batch_sampler import FixedBatchSampler, make_exclude_keys
from poptorch_geometric.collate import CombinedBatchingCollater, FixedSizeCollater
from poptorch_geometric.dataloader import CustomFixedSizeDataLoader, DataLoader, FixedSizeDataLoader
from poptorch_geometric.fixed_size_options import FixedSizeOptions, FixedSizeStrategy, OverSizeStrategy
from poptorch_geometric.masker import PostLayerMasker, PreLayerMasker
from poptorch_geometric.stepper import TrainingStepper
from poptorch_geometric.types import PyGArgsParser, registerCustomArgParsers

__all__ = [
    "CombinedBatchingCollater",
    "CustomFixedSizeDataLoader",
    "DataLoader",
    "FixedBatchSampler",
    "FixedSizeCollater",
    "FixedSizeDataLoader",
    "FixedSizeOptions",
    "FixedSizeStrategy",
    "OverSizeStrategy",
    "PostLayerMasker",
    "PreLayerMasker",
    "PyGArgsParser",
    "TrainingStepper",
    "make_exclude_keys",
    "registerCustomArgParsers",
    "set_aggregation_dim_size",
]

__pilotage_facade__ = True
"""Errors name the user's own line, and none of this package."""

registerCustomArgParsers()
