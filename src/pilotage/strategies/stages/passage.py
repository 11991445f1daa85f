"""How what one stage has computed comes to the card of the next."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


class Passage:
    """Copies from card to card beside the computation: no card waits for a copy that it does not need.

    Left to themselves, copies stand in the queue of the card that they leave and wait for all that the other one has to do.
    """

    def __init__(self, cards: Sequence[torch.device]) -> None:
        self._cards = cards
        self._copying = {card: torch.cuda.Stream(card) for card in set(cards) if card.type == "cuda"}

    def at(self, stage: int) -> AbstractContextManager[object]:
        """Make the card of a stage the one where work is done that names no card."""
        card = self._cards[stage]
        return torch.cuda.device(card) if card.type == "cuda" else nullcontext()

    def bring(self, carrier: Tensor, stage: int) -> Tensor:
        """A tensor on the card of a stage."""
        source, target = carrier.device, self._cards[stage]
        if source == target:
            return carrier
        if source.type != "cuda" or target.type != "cuda":
            return carrier.to(target)
        leaving, coming = self._copying[source], self._copying[target]
        leaving.wait_stream(torch.cuda.current_stream(source))
        with torch.cuda.stream(leaving), torch.cuda.stream(coming):
            brought = carrier.to(target, non_blocking=True)
        carrier.record_stream(leaving)
        working = torch.cuda.current_stream(target)
        working.wait_stream(coming)
        brought.record_stream(working)
        return brought
