"""The events of each batch, as a pure function of its number, so that a run resumes by counting on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cosmictagger.data.events import Array
from cosmictagger.errors import DataError


def entries_of(order: str, batch: int, *, events: int, minibatch_size: int, seed: int) -> Array:
    """The entries of a batch; batches are counted from 0 since the start of training."""
    if order not in ORDERS:
        raise DataError(f"No order of entries named {order!r}. Choose one of: {', '.join(ORDERS)}.")
    return ORDERS[order](batch, events, minibatch_size, seed)


def _random_blocks(batch: int, events: int, minibatch_size: int, seed: int) -> Array:
    """Consecutive entries from a random start; unlike in the original, blocks can reach the last event."""
    start = np.random.default_rng((seed, batch)).integers(0, events - minibatch_size, endpoint=True)
    return np.arange(start, start + minibatch_size)


def _serial_access(batch: int, events: int, minibatch_size: int, seed: int) -> Array:
    """From the first to the last, then again from the first."""
    return (batch * minibatch_size + np.arange(minibatch_size)) % events


def _shuffle(batch: int, events: int, minibatch_size: int, seed: int) -> Array:
    """Every event once per epoch; a batch may span two epochs."""
    positions = batch * minibatch_size + np.arange(minibatch_size)
    epochs = {
        int(epoch): np.random.default_rng((seed, int(epoch))).permutation(events) for epoch in positions // events
    }
    return np.array([epochs[position // events][position % events] for position in positions.tolist()], np.int64)


ORDERS: dict[str, Callable[[int, int, int, int], Array]] = {
    "random_blocks": _random_blocks,
    "serial_access": _serial_access,
    "shuffle": _shuffle,
}
"""Orders by name."""
