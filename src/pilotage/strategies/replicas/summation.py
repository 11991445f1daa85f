"""Sums of gradients over several cards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from pilotage.execution.state import DeviceState, Exchange
from pilotage.program.layout import Counter
from pilotage.torch_private import foreach_div_


class Summation(Protocol):
    """How cards sum their pooled gradients."""

    def __call__(self, cards: Sequence[DeviceState], exchange: Exchange | None) -> None:
        """Give all cards the sum of their pooled gradients, over all instances if there is an ``exchange``."""
        ...


def sum_by_copies(cards: Sequence[DeviceState], exchange: Exchange | None) -> None:
    """Give all cards the sum of their pooled gradients, over all instances if there is an ``exchange``."""
    pools = [card.flat_gradients for card in cards]
    sum_on_first(pools)
    complete(cards, exchange)
    copy_from_first(pools)


@torch.no_grad()
def sum_on_first(pools: Sequence[Tensor]) -> None:
    """Add all tensors to the first."""
    first, *others = pools
    for other in others:
        first.add_(other.to(first.device, non_blocking=True))


@torch.no_grad()
def complete(cards: Sequence[DeviceState], exchange: Exchange | None) -> None:
    """Turn the sum of all cards, which is in the first one's pool, into that of all instances."""
    if means := _means(cards[0]):
        # Each card has the mean of its own micro-batches.
        foreach_div_(means, len(cards))
    if exchange is not None:
        exchange(cards[0].flat_gradients)()


@torch.no_grad()
def copy_from_first(pools: Sequence[Tensor]) -> None:
    """Overwrite all tensors by the first."""
    first, *others = pools
    for other in others:
        other.copy_(first, non_blocking=True)


def _means(state: DeviceState) -> list[Tensor]:
    """The pooled gradients of which each card has its own mean; groups of replicas have sums."""
    if Counter.POOLED not in state.layout.counters:
        return []
    return [pool for name, pool in state.pools.items() if name not in state.layout.replica_groups]
