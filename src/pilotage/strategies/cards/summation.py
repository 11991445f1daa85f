"""Gradients of several cards made one sum."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pilotage.strategies.cards.state import CardStates


def add_up(state: CardStates) -> None:
    """Give all cards the sum of their pooled gradients, over all instances."""
    pools = [card.flat_gradients for card in state.of_cards]
    collect(pools)
    complete(state)
    hand_out(pools)


@torch.no_grad()
def collect(pools: Sequence[Tensor]) -> None:
    """Add all tensors to the first."""
    first, *others = pools
    for other in others:
        first.add_(other.to(first.device, non_blocking=True))


@torch.no_grad()
def complete(state: CardStates) -> None:
    """Make the sum of all cards, which is the first one's pool, that of all instances."""
    if means := state.means:
        # Each card has the mean of its own micro-batches.
        torch._foreach_div_(means, len(state.of_cards))
    if state.between_instances is not None:
        state.between_instances(state.flat_gradients)()


@torch.no_grad()
def hand_out(pools: Sequence[Tensor]) -> None:
    """Overwrite all tensors by the first."""
    first, *others = pools
    for other in others:
        other.copy_(first, non_blocking=True)
