"""Says that PyTorch Geometric's helpers for IPUs are not here, and what to do instead."""

from __future__ import annotations

raise ModuleNotFoundError(
    "poptorch_geometric is out of scope for now: Pilotage has no FixedSizeDataLoader, no padding strategies and no "
    "masked "
    "pooling. Pad graphs to a fixed number of nodes and edges yourself, or with PyTorch Geometric's own transforms, "
    "and "
    "register a poptorch.ICustomArgParser for your batch type by poptorch.registerCustomArgParser.",
    name="poptorch_geometric",
)
