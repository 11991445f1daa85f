"""Distances of weights, from their digests; needs no torch."""

from __future__ import annotations

import base64
import math
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["BUCKETS", "complete_digests", "distance", "match_weights", "total_distance"]

Digest = dict[str, Any]

BUCKETS = 16
"""How many numbers the sketch of a tensor has."""


def complete_digests(tensors: Sequence[Digest], sketches: str) -> list[Digest]:
    """Descriptions of tensors together with their sketches and the norms of these."""
    numbers = array("f", base64.b64decode(sketches)).tolist()
    rows = [numbers[place : place + BUCKETS] for place in range(0, len(numbers), BUCKETS)]
    return [{**tensor, "norm": math.hypot(*row), "sketch": row} for tensor, row in zip(tensors, rows, strict=True)]


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
