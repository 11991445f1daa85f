"""What was measured of each model, in a file that is complete after every model."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

PEERS = "torch.compile"
OURS = "Pilotage"
EAGER = "eager PyTorch"
LARGE = 0.020
"""Seconds of an eager step above which a model counts as large."""


@dataclass(frozen=True)
class Way:
    """One way of training a model."""

    rates: list[float]
    """Steps per second of each round."""

    peak_bytes: int = 0
    seconds_until_ready: float = 0.0

    @property
    def rate(self) -> float:
        """Steps per second in the median round."""
        return statistics.median(self.rates)


@dataclass(frozen=True)
class Model:
    """All ways of training one model, measured in alternation."""

    ways: Mapping[str, Way]
    left_out: list[str] = field(default_factory=list)
    """Ways that should have been measured, but failed or took too long to compile."""

    @property
    def peer(self) -> str:
        """The fastest mode of torch.compile; empty if none was measured."""
        return self._fastest(PEERS)

    @property
    def own(self) -> str:
        """Our fastest way; empty if none was measured."""
        return self._fastest(OURS)

    @property
    def is_compared(self) -> bool:
        """Whether there are both."""
        return bool(self.peer and self.own)

    @property
    def ratio(self) -> float:
        """Our rate divided by that of the fastest mode of torch.compile."""
        return self.ways[self.own].rate / self.ways[self.peer].rate

    @property
    def memory(self) -> float:
        """Our peak memory divided by that of the fastest mode of torch.compile."""
        return self.ways[self.own].peak_bytes / max(1, self.ways[self.peer].peak_bytes)

    @property
    def is_large(self) -> bool:
        """Whether a step of eager PyTorch takes long."""
        return EAGER in self.ways and 1 / self.ways[EAGER].rate > LARGE

    def _fastest(self, beginning: str) -> str:
        found = [way for way in self.ways if way.startswith(beginning)]
        return max(found, key=lambda way: self.ways[way].rate, default="")


def models_to_data(models: Mapping[str, Model]) -> dict[str, Any]:
    """The models as values of JSON."""
    return {name: asdict(model) for name, model in models.items()}


def models_from_data(data: Mapping[str, Any]) -> dict[str, Model]:
    """The opposite of `models_to_data`."""
    return {
        name: Model({way: Way(**values) for way, values in entry["ways"].items()}, entry["left_out"])
        for name, entry in data.items()
    }


def details_of(path: Path | None) -> Mapping[str, Any]:
    """The details of the only table in a file of results; empty if there is no file."""
    if path is None or not path.exists():
        return {}
    (table,) = json.loads(path.read_text())["tables"]
    details: Mapping[str, Any] = table["details"]
    return details


def geometric_mean(values: Iterable[float]) -> float:
    """The mean of ratios."""
    return math.exp(statistics.fmean(math.log(value) for value in values))
