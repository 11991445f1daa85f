"""Summing gradients over replicas."""

from __future__ import annotations

import math

from pilotage.prediction.devices.model import Link

__all__ = ["sum_seconds"]


def sum_seconds(bytes_: int, replicas: int, link: Link) -> float:
    """The time to sum some bytes over replicas on a ring; the slowest link decides."""
    if replicas < 2:
        return 0.0
    is_far = link.group and replicas > link.group
    rate = link.far_bytes_per_second if is_far and link.far_bytes_per_second else link.bytes_per_second
    return 2 * (replicas - 1) / replicas * bytes_ / rate + 2 * math.log2(replicas) * link.latency_seconds
