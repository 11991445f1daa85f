"""A model of the time of an update by number of instances: computation, exchange and their overlap."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy
from numpy.typing import NDArray

from pilotage.errors import OptionError


@dataclass(frozen=True, kw_only=True, slots=True)
class Scaling:
    """The time of one update in seconds, as a sum of parts that grow differently with the number of instances."""

    compute: float
    """Of one instance, for its own part of the batch."""

    exchange: float = 0.0
    """Time for a ring to send all gradients twice: 2 x bytes / bandwidth."""

    overlap: float = 0.0
    """The fraction of the computation, between 0 and 1, that can hide an exchange."""

    per_doubling: float = 0.0
    """Added by each doubling: the depth of trees, and the wait for the slowest instance."""

    per_instance: float = 0.0
    """Added by each instance: the latency of the steps of a ring."""

    def __post_init__(self) -> None:
        for name in ("compute", "exchange", "per_doubling", "per_instance"):
            if getattr(self, name) < 0:
                raise OptionError(f"{name} is {getattr(self, name)} seconds. It cannot be negative.")
        if not 0 <= self.overlap <= 1:
            raise OptionError(f"overlap is {self.overlap}. It must be between 0 and 1.")

    def seconds(self, instances: int) -> float:
        """The time of one update."""
        transfer = self.exchange * (instances - 1) / instances
        visible = max(0.0, transfer - self.overlap * self.compute)
        return self.compute + visible + self.per_doubling * math.log2(instances) + self.per_instance * (instances - 1)

    def efficiency(self, instances: int) -> float:
        """The throughput of each instance relative to that of a single one."""
        return self.seconds(1) / self.seconds(instances)

    def throughput(self, instances: int, samples: float = 1.0) -> float:
        """Samples per second of all instances, for ``samples`` per instance and update."""
        return instances * samples / self.seconds(instances)


def fitted(measured: Mapping[int, float], samples: float = 1.0) -> Scaling:
    """The model with the smallest relative error for measured throughputs by number of instances.

    Throughputs cannot show an exchange that is hidden by the computation, so ``exchange`` stays 0.
    """
    if len(measured) < 3:
        raise OptionError(f"{len(measured)} measurements are too few for three unknowns. Give at least 3.")
    counts = numpy.array(sorted(measured), dtype=float)
    seconds = counts * samples / numpy.array([measured[int(count)] for count in counts])
    columns = numpy.stack([numpy.ones_like(counts), numpy.log2(counts), counts - 1], axis=1) / seconds[:, None]
    compute, per_doubling, per_instance = _nonnegative(columns)
    return Scaling(compute=compute, per_doubling=per_doubling, per_instance=per_instance)


def _nonnegative(columns: NDArray[numpy.float64]) -> tuple[float, float, float]:
    """Non-negative weights for which the weighted sum of the columns is closest to one."""
    found: list[tuple[float, list[float]]] = []
    for chosen in (part for size in range(1, 4) for part in combinations(range(3), size)):
        weights = numpy.zeros(3)
        weights[list(chosen)] = numpy.linalg.lstsq(columns[:, list(chosen)], numpy.ones(len(columns)), rcond=None)[0]
        if (weights >= 0).all() and weights[0] > 0:
            found.append((float(((columns @ weights - 1) ** 2).sum()), weights.tolist()))
    _, (compute, per_doubling, per_instance) = min(found)
    return compute, per_doubling, per_instance
