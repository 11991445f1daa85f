"""A program whose local replicas run on several cards of one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.recording_turns import RECORDING
from pilotage.execution.state import DeviceState
from pilotage.execution.walk import Results, WalkedExecutable, micro_batches_of
from pilotage.interrupts import INTERRUPTS
from pilotage.program.program import Program
from pilotage.program.schedule import Schedule
from pilotage.strategies.cards.replicas import CardShare
from pilotage.strategies.cards.state import CardStates

MicroBatches = Sequence[Sequence[Tensor]]


class CardWork(Protocol):
    """One card at work; what it is told to do may still be going on when a method returns."""

    def begin(self, state: DeviceState, streams: RandomStreams, batches: MicroBatches) -> None:
        """Make ready for a call with the card's own micro-batches, which are on the host."""
        ...

    def go(self, segment: int) -> None:
        """Run a segment of the card's share."""
        ...

    def finish(self) -> tuple[list[list[Tensor]], MicroBatches]:
        """Wait for the card; the parts of its outputs on the host, and the micro-batches as forward has left them."""
        ...


class Summation(Protocol):
    """How cards add up what each of them has."""

    def __call__(self, state: CardStates) -> None:
        """Give all cards the sum of their pooled gradients, over all instances."""
        ...


class CardsExecutable:
    """Has all cards run their replicas, add up their gradients once per update, and do the same update."""

    def __init__(
        self,
        program: Program,
        schedule: Schedule,
        shares: Sequence[CardShare],
        cards: Sequence[CardWork],
        first: WalkedExecutable,
        add_up: Summation,
    ) -> None:
        self._first = first
        self._written = program.written_inputs
        self._schedule = schedule
        self._shares = shares
        self._cards = cards
        self._add_up = add_up

    def run(self, state: DeviceState, streams: RandomStreams, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run one whole schedule on inputs of the host, and bring the outputs back."""
        assert isinstance(state, CardStates)
        batches = micro_batches_of(inputs, self._schedule.micro_batches)
        try:
            with RECORDING.call():
                return self._run(state, streams, batches)
        except BaseException:
            # Gradients of an update that never came must not leak into the next one.
            state.forget_gradients()
            raise

    def _run(self, state: CardStates, streams: RandomStreams, batches: MicroBatches) -> list[Tensor]:
        for share, card, own in zip(self._shares, self._cards, state.of_cards, strict=True):
            there = streams.on_card(share.device, share.replicas)
            card.begin(own, there, [batches[number] for number in share.micro_batches])
        done, last = 0, len(self._shares[0].segments) - 1
        for number, segment in enumerate(self._shares[0].segments):
            if segment.updates:
                self._add_up(state)
                self._update(state, number)
                state.updates_of_call = (done := done + 1)
                if number < last:
                    INTERRUPTS.let_in()
                continue
            for card in self._cards:
                card.go(number)
        return self._together(batches)

    def _update(self, state: CardStates, segment: int) -> None:
        try:
            # All cards draw for an update what the first one draws, which is therefore the last one to move its stream on.
            for card in reversed(self._cards):
                card.go(segment)
        except BaseException:
            # Whatever became of the one that failed, others may have their update.
            state.begin_update()
            raise

    def _together(self, batches: MicroBatches) -> list[Tensor]:
        results = Results(self._schedule)
        for share, card in zip(self._shares, self._cards, strict=True):
            parts, left = card.finish()
            for place, part in zip(share.results, parts, strict=True):
                results.put(place, part, ())
            self._write_back(left, [batches[number] for number in share.micro_batches])
        return results.together(self._first.constants)

    def _write_back(self, written: MicroBatches, batches: MicroBatches) -> None:
        for theirs, ours in zip(written, batches, strict=True):
            for position in self._written:
                if theirs[position] is not ours[position]:
                    ours[position].copy_(theirs[position])


class WalkedCard:
    """Walks its share step by step."""

    def __init__(self, share: CardShare, walked: WalkedExecutable) -> None:
        self._share = share
        self._walked = walked

    def begin(self, state: DeviceState, streams: RandomStreams, batches: MicroBatches) -> None:
        """Make ready for a call with the card's own micro-batches, which are on the host."""
        self._inputs = [[tensor.to(state.device, non_blocking=True) for tensor in batch] for batch in batches]
        self._walk = self._walked.begin_with(state, streams, self._inputs)

    def go(self, segment: int) -> None:
        """Run a segment of the card's share."""
        self._walk.go_on(self._share.segments[segment].steps)

    def finish(self) -> tuple[list[list[Tensor]], MicroBatches]:
        """Wait for the card; the parts of its outputs on the host, and the micro-batches as forward has left them."""
        parts, inputs = [[output.to("cpu") for output in part] for part in self._walk.parts], self._inputs
        # Between calls nothing is held on to that a program which leaves its device would have to free.
        del self._walk, self._inputs
        return parts, inputs
