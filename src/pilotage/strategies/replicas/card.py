"""One of several cards that run replicas side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.state import DeviceState
from pilotage.execution.walk import WalkedExecutable
from pilotage.strategies.replicas.shares import CardShare

MicroBatches = Sequence[Sequence[Tensor]]


class CardWorker(Protocol):
    """Runs one card's share of a schedule; the card may still be working when a method returns."""

    def begin(self, state: DeviceState, streams: RandomStreams, batches: MicroBatches) -> None:
        """Prepare a call with the card's own micro-batches, which are on the host."""
        ...

    def run_segment(self, segment: int) -> None:
        """Run a segment of the card's share."""
        ...

    def finish(self) -> tuple[list[list[Tensor]], MicroBatches]:
        """Wait for the card; the parts of its outputs on the host, and the micro-batches as forward has left them."""
        ...


class WalkedCard:
    """Runs its share step by step."""

    def __init__(self, share: CardShare, walked: WalkedExecutable) -> None:
        self._share = share
        self._walked = walked

    def begin(self, state: DeviceState, streams: RandomStreams, batches: MicroBatches) -> None:
        """Prepare a call with the card's own micro-batches, which are on the host."""
        self._inputs = [[tensor.to(state.device, non_blocking=True) for tensor in batch] for batch in batches]
        self._walk = self._walked.begin_with(state, streams, self._inputs)

    def run_segment(self, segment: int) -> None:
        """Run a segment of the card's share."""
        self._walk.run(self._share.segments[segment].steps)

    def finish(self) -> tuple[list[list[Tensor]], MicroBatches]:
        """Wait for the card; the parts of its outputs on the host, and the micro-batches as forward has left them."""
        parts, inputs = [[output.to("cpu") for output in part] for part in self._walk.parts], self._inputs
        # Nothing is kept between calls that a detached program would have to free.
        del self._walk, self._inputs
        return parts, inputs
