"""NVIDIA cards side by side: streams, recordings, and sums by NCCL."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import get_ident

import torch
from torch import Tensor
from torch.cuda import nccl

from pilotage.execution.cuda_graph import can_be_recorded, nothing_is_done, trying_algorithms
from pilotage.execution.pinned_inputs import InputStaging, OutputStaging
from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.recording_turns import RECORDING
from pilotage.execution.state import NOTHING, DeviceState, Exchange
from pilotage.execution.walk import WalkedExecutable, micro_batches_of
from pilotage.program.program import Program
from pilotage.strategies.replicas.card import CardWorker, MicroBatches, WalkedCard
from pilotage.strategies.replicas.shares import CardShare
from pilotage.strategies.replicas.summation import complete, copy_from_first, sum_on_first
from pilotage.torch_private import HAS_NCCL


def streams_of(shares: Sequence[CardShare]) -> list[torch.cuda.Stream]:
    """A stream for each card; a card that is listed twice has one stream, as it has one random generator."""
    streams = {share.device: torch.cuda.Stream(share.device) for share in shares}
    return [streams[share.device] for share in shares]


class CudaCard:
    """Runs its share step by step in the first call, records it in the second, then replays it, on its own stream."""

    def __init__(self, share: CardShare, program: Program, walked: WalkedExecutable, stream: torch.cuda.Stream) -> None:
        self._share = share
        self._walked = walked
        self._stream = stream
        self._draws = program.draws_random_numbers
        # Generators are set for each of several replicas between the steps, which a recording cannot do.
        self._records = not (self._draws and len(share.replicas) > 1) and all(
            can_be_recorded(computation, share.device) for computation in program.computations.values()
        )
        self._state: DeviceState | None = None
        self._recording: _RecordedShare | None = None
        self._warm: set[int] = set()
        """Threads that have run the share: each has its own library handles, which cannot be made while recording."""
        self._work: CardWorker = WalkedCard(share, walked)

    def begin(self, state: DeviceState, streams: RandomStreams, batches: MicroBatches) -> None:
        """Prepare a call with the card's own micro-batches, which are on the host."""
        self._work = self._work_for(state, batches)
        self._stream.wait_stream(torch.cuda.current_stream(self._share.device))
        with torch.cuda.stream(self._stream):
            self._work.begin(state, streams, batches)

    def run_segment(self, segment: int) -> None:
        """Run a segment of the card's share."""
        with torch.cuda.stream(self._stream), trying_algorithms():
            self._work.run_segment(segment)

    def finish(self) -> tuple[list[list[Tensor]], MicroBatches]:
        """Wait for the card; the parts of its outputs on the host, and the micro-batches as forward has left them."""
        with torch.cuda.stream(self._stream):
            finished = self._work.finish()
        torch.cuda.current_stream(self._share.device).wait_stream(self._stream)
        return finished

    def _work_for(self, state: DeviceState, batches: MicroBatches) -> CardWorker:
        if state is not self._state:
            self._state, self._recording = state, None
            self._warm.clear()
        if not self._records or (self._recording is None and get_ident() not in self._warm):
            self._warm.add(get_ident())
            return WalkedCard(self._share, self._walked)
        if self._recording is None:
            with (
                RECORDING.recording(),
                torch.cuda.device(self._share.device),
                trying_algorithms(),
                nothing_is_done(state),
            ):
                # The memory of the first call would stay unused beside that of the recording.
                torch.cuda.empty_cache()
                self._recording = _RecordedShare(
                    self._share, self._walked, state, batches, self._stream, draws=self._draws
                )
        return self._recording


class _RecordedShare:
    """A CUDA graph for each segment, with its input and output buffers."""

    def __init__(
        self,
        share: CardShare,
        walked: WalkedExecutable,
        state: DeviceState,
        batches: MicroBatches,
        stream: torch.cuda.Stream,
        *,
        draws: bool,
    ) -> None:
        self._share = share
        self._draws = draws
        whole = [_joined(pieces).to(state.device) for pieces in zip(*batches, strict=True)]
        self._inputs = micro_batches_of(whole, len(batches))
        self._staging = InputStaging(whole, len(batches))
        self._graphs: list[torch.cuda.CUDAGraph] = []
        walk = walked.begin_with(state, RandomStreams(state.device), self._inputs)
        for segment in share.segments:
            graph = torch.cuda.CUDAGraph()
            # One pool for all, because they are replayed in this order: later ones read results of earlier ones.
            pool = self._graphs[0].pool() if self._graphs else None
            # Other threads may use the card meanwhile.
            with torch.cuda.graph(graph, stream=stream, pool=pool, capture_error_mode="thread_local"):
                walk.run(segment.steps)
            self._graphs.append(graph)
        self._parts = walk.parts
        self._fetching = OutputStaging([output for part in self._parts for output in part])

    def begin(self, state: DeviceState, streams: RandomStreams, batches: MicroBatches) -> None:
        """Prepare a call; inputs are copied when they are needed."""
        self._state, self._streams = state, streams
        self._pieces = list(zip(*batches, strict=True))
        self._staging.wait()

    def run_segment(self, segment: int) -> None:
        """Replay a segment."""
        steps = self._share.segments[segment]
        for number in steps.micro_batches:
            self._staging.bring(self._pieces, number)
        if steps.updates:
            self._state.torn = self._state.all_parts
        with self._drawing(steps.steps[0].replica):
            self._graphs[segment].replay()
        if steps.updates:
            self._state.torn = NOTHING

    def finish(self) -> tuple[list[list[Tensor]], MicroBatches]:
        """The parts of the outputs on the host, and the micro-batches as forward has left them."""
        fetched = iter(self._fetching.fetch([output for part in self._parts for output in part]))
        return [[next(fetched) for _ in part] for part in self._parts], self._inputs

    def _drawing(self, replica: int) -> AbstractContextManager[None]:
        return self._streams.of_replica(replica) if self._draws else nullcontext()


class CudaSummation:
    """Sums the gradients of cards on their streams: by NCCL, or by copies from card to card if NCCL is missing."""

    def __init__(self, streams: Sequence[torch.cuda.Stream]) -> None:
        self._streams = streams

    def __call__(self, cards: Sequence[DeviceState], exchange: Exchange | None) -> None:
        """Give all cards the sum of their pooled gradients, over all instances if there is an ``exchange``."""
        pools = [card.flat_gradients for card in cards]
        first, *others = self._streams
        if _has_nccl() and nccl.is_available(pools):
            nccl.reduce(pools, root=0, streams=self._streams)
            with torch.cuda.stream(first):
                complete(cards, exchange)
            nccl.broadcast(pools, root=0, streams=self._streams)
            return
        for other in others:
            first.wait_stream(other)
        with torch.cuda.stream(first):
            sum_on_first(pools)
            complete(cards, exchange)
            copy_from_first(pools)
        for other in others:
            other.wait_stream(first)


def _has_nccl() -> bool:
    return HAS_NCCL


def _joined(pieces: Sequence[Tensor]) -> Tensor:
    return pieces[0] if len(pieces) == 1 else torch.cat(list(pieces))
