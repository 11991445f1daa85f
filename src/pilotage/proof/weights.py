"""Distances of weights, from their digests; needs no torch."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

__all__ = ["distance", "match_weights", "total_distance"]

Digest = dict[str, Any]


def match_weights(wanted: Iterable[Digest], offered: Iterable[Digest]) -> list[tuple[Digest, Digest]]:
    """Pairs of digests of equal shape, in their order; where several have that shape, the closest ones."""
    left = list(offered)
    pairs = []
    for each in wanted:
        candidates = [other for other in left if other["shape"] == each["shape"]]
        if candidates:
            # Ties, such as biases that are all zero, go by order.
            found = min(candidates, key=lambda other: distance(each, other))
            left.remove(found)
            pairs.append((each, found))
    return pairs


def distance(left: Digest, right: Digest) -> float:
    """An estimate of the distance of two tensors."""
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(left["sketch"], right["sketch"], strict=True)))


def total_distance(pairs: Iterable[tuple[Digest, Digest]]) -> float:
    """An estimate of the distance of all weights together."""
    return math.sqrt(sum(distance(*pair) ** 2 for pair in pairs))
