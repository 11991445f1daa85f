"""How long each part of each step took."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

PARTS = (
    "iteration",
    "train",
    "val",
    "io",
    "forward",
    "backward",
    "checkpoint",
    "loss",
    "summary",
    "log",
    "optimizer",
    "metrics",
)
KIND = np.dtype([("i", "i4"), ("start", "datetime64[us]"), *((part, "timedelta64[us]") for part in PARTS)])


@dataclass(slots=True)
class StepProfile:
    """Rows of `KIND`, one per iteration; parts that were not measured stay 0."""

    rows: list[Any] = field(default_factory=list)

    def add(self, number: int, start: float, seconds: Mapping[str, float]) -> None:
        """Add an iteration; ``start`` is in seconds since the epoch."""
        parts = (np.timedelta64(round(1e6 * seconds.get(part, 0.0)), "us") for part in PARTS)
        self.rows.append((number, np.datetime64(round(1e6 * start), "us"), *parts))

    def save(self, folder: Path, configuration: Mapping[str, Any], rank: int = 0) -> None:
        """Write ``profiling_info_rank_<r>.npy`` and the configuration as ``args.json``."""
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / f"profiling_info_rank_{rank}.npy", np.array(self.rows, dtype=KIND))
        if rank == 0:
            (folder / "args.json").write_text(json.dumps(configuration, indent=1, sort_keys=True, default=str) + "\n")
