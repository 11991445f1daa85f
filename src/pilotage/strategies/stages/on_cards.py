"""Stages on several cards of one process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.fx import Node

from pilotage.options.choices import PipelineOrder
from pilotage.passes.stage_program import StageProgram
from pilotage.strategies.stages.orders import Move, moves, order_for
from pilotage.strategies.stages.work import StageWork, on_device


class CardTransport:
    """Starts the work of all stages in the order of a pipeline, and overlaps copies between cards with computation.

    Copies use separate streams, so that no card waits for a copy that it does not need.
    """

    def __init__(
        self, cards: Sequence[torch.device], order: PipelineOrder, micro_batches: int, *, trains: bool
    ) -> None:
        self.local_stages = range(len(cards))
        self._cards, self._order, self._trains = cards, order, trains
        self._moves = tuple(moves(order, micro_batches, len(cards), trains=trains))
        self._copying = {card: torch.cuda.Stream(card) for card in set(cards) if card.type == "cuda"}

    def again(self, micro_batches: int) -> CardTransport:
        """A transport between the same stages for calls with this many micro-batches in each round."""
        return CardTransport(self._cards, self._order, micro_batches, trains=self._trains)

    def begin_call(self, works: Sequence[StageWork], inputs: Sequence[Tensor], *, reconnect: bool) -> Sequence[Tensor]:
        """Return the inputs: all stages are in this process."""
        return inputs

    def run_round(self, works: Sequence[StageWork]) -> None:
        """Pass one round of micro-batches through all stages, and back if they train."""
        carriers: dict[Move, Tensor] = {}
        for move in self._moves:
            work, card = works[move.stage], self._cards[move.stage]
            before = Move(move.stage + 1 if move.back else move.stage - 1, move.number, move.back)
            is_begun = before.stage in self.local_stages
            with on_device(card):
                carrier = self._copied(carriers.pop(before), card) if is_begun else torch.empty(1, device=card)
                carriers[move] = (work.backward if move.back else work.forward)(move.number, carrier)

    def gather(self, values: Sequence[float]) -> list[float]:
        """One number for each stage; all stages are in this process."""
        return list(values)

    def join_outputs(self, own: list[Tensor], *, finite: bool) -> tuple[list[Tensor], bool]:
        """The outputs of all stages; all stages are in this process."""
        return own, finite

    def join_weights(self, own: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The weights and buffers of all stages; all stages are in this process."""
        return own

    def _copied(self, carrier: Tensor, target: torch.device) -> Tensor:
        """A result of another card, copied to the card that needs it."""
        source = carrier.device
        if source == target:
            return carrier
        if source.type != "cuda" or target.type != "cuda":
            return carrier.to(target)
        leaving, coming = self._copying[source], self._copying[target]
        leaving.wait_stream(torch.cuda.current_stream(source))
        with torch.cuda.stream(leaving), torch.cuda.stream(coming):
            copied = carrier.to(target, non_blocking=True)
        carrier.record_stream(leaving)
        working = torch.cuda.current_stream(target)
        working.wait_stream(coming)
        copied.record_stream(working)
        return copied


def order_on_cards(asked: PipelineOrder | None, cuts: Sequence[StageProgram], micro_batches: int) -> PipelineOrder:
    """The order for stages that draw from the same random streams."""
    # A single micro-batch goes the same way in every order.
    order = order_for(asked if micro_batches > 1 else None, micro_batches, len(cuts), trains=cuts[0].program.trains)
    backwards = [cut.graphs.backward for cut in cuts if cut.graphs.backward is not None]
    # On one card, backward draws its random numbers before the next micro-batch's forward.
    draws = any(_draws(node) for backward in backwards for node in backward.graph.graph.nodes)
    return PipelineOrder.SHARDED if draws else order


def _draws(node: Node) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
