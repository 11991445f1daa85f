"""A whole schedule as CUDA graphs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from threading import get_ident

import torch
from torch import Tensor

from pilotage.execution.pinned_inputs import InputStaging, OutputStaging
from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.recording_turns import RECORDING
from pilotage.execution.state import NOTHING, DeviceState
from pilotage.execution.walk import WalkedExecutable
from pilotage.program.program import Action, Computation, Program
from pilotage.program.schedule import Schedule, Step

_PARTS = 4
"""The most graphs that a call is recorded in: while one runs, the inputs of the next are copied."""

_WORTH_A_PART = 1 << 16
"""Bytes of input below which a separate copy costs more than it saves."""


Wait = Callable[[Callable[[], bool]], None]
"""Waits until a function says that the card is done."""


class CudaGraphExecutable:
    """Runs the schedule step by step in the first call, records it in the second, and replays it from then on.

    The first call is real work, and also the warm-up that libraries need before a recording: they try their algorithms
    in it.
    """

    times = None
    """None: only the card knows them."""

    def __init__(self, walked: WalkedExecutable, program: Program, schedule: Schedule) -> None:
        self._walked = walked
        self._program = program
        self._schedule = schedule
        self._stream = torch.cuda.Stream()
        self._state: DeviceState | None = None
        self._recorded: _Recording | None = None
        self._seconds = 0.0
        """How long the first call took, in which every step was launched by itself."""
        self._warm: set[int] = set()
        """Threads that have run the program: each has its own library handles, which cannot be made while recording."""

    def run(self, state: DeviceState, streams: RandomStreams, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run one whole schedule on inputs of the host, and return the outputs there."""
        try:
            RECORDING.enter()
            return self._run(state, streams, inputs)
        finally:
            RECORDING.inside.discard(get_ident())

    def _run(self, state: DeviceState, streams: RandomStreams, inputs: Sequence[Tensor]) -> list[Tensor]:
        if state.optimizer_shards is not None:
            # Instances send each other their updated weights between the steps, which a recording cannot do.
            return self._walked.run(state, streams, inputs)
        draws_apart = self._program.draws_random_numbers and not streams.shared
        if draws_apart and len(streams.states) > 1:
            # Generators are set for each of several replicas between the steps, which a recording cannot do.
            return self._walked.run(state, streams, inputs)
        if state is not self._state:
            self._state, self._recorded = state, None
            self._warm.clear()
        if self._recorded is None and get_ident() not in self._warm:
            self._warm.add(get_ident())
            return self._warm_up(state, streams, inputs)
        with streams.of_replica(0) if draws_apart else nullcontext():
            if self._recorded is None:
                self._recorded = self._record(state, inputs)
            outputs = self._replay(self._recorded, state, inputs)
        for position in self._program.written_inputs:
            inputs[position].copy_(self._recorded.inputs[position])
        return outputs

    def _replay(self, recorded: _Recording, state: DeviceState, inputs: Sequence[Tensor]) -> list[Tensor]:
        if not self._program.trains:
            return recorded.replay(inputs, state)
        state.updates_of_call = 0
        state.torn = state.all_parts
        outputs = recorded.replay(inputs, state)
        state.torn = NOTHING
        state.updates_of_call = self._schedule.updates
        return outputs

    def _warm_up(self, state: DeviceState, streams: RandomStreams, inputs: Sequence[Tensor]) -> list[Tensor]:
        begun = time.monotonic()
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream), trying_algorithms():
            outputs = self._walked.run(state, streams, inputs)
        torch.cuda.current_stream().wait_stream(self._stream)
        self._seconds = time.monotonic() - begun
        return outputs

    def _record(self, state: DeviceState, inputs: Sequence[Tensor]) -> _Recording:
        with RECORDING.recording(), trying_algorithms(), nothing_is_done(state):
            # The memory of the warm-up would stay unused beside that of the recording.
            torch.cuda.empty_cache()
            wait = _waiting(state, 2 * self._seconds)
            return _Recording(self._walked, self._schedule, state, inputs, self._stream, wait)


class _Recording:
    """CUDA graphs with their input and output buffers.

    If the card itself exchanges gradients with other instances, the graphs contain that. Otherwise instances exchange
    them between two graphs: one computes them, the next one updates the weights.
    """

    def __init__(
        self,
        walked: WalkedExecutable,
        schedule: Schedule,
        state: DeviceState,
        inputs: Sequence[Tensor],
        stream: torch.cuda.Stream,
        wait: Wait | None = None,
    ) -> None:
        """``wait`` waits for a card that exchanges gradients within the graphs; None if it does not."""
        self._wait = wait
        self.inputs = [torch.empty_like(tensor, device=state.device) for tensor in inputs]
        self._exchanges = state.exchange is not None and wait is None
        self._parts = 1 if self._exchanges else _parts(schedule, inputs)
        self._staging = InputStaging(self.inputs, self._parts)
        self._graphs: list[torch.cuda.CUDAGraph] = []
        walk = walked.begin(state, RandomStreams(state.device), self.inputs)
        groups = between_exchanges(schedule) if self._exchanges else schedule.in_parts(self._parts)
        with nullcontext() if wait is not None else without_exchange(state):
            for steps in groups:
                graph = torch.cuda.CUDAGraph()
                # One pool for all: a later part reads what an earlier one has computed.
                pool = self._graphs[0].pool() if self._graphs else None
                # Other threads may use the card meanwhile.
                with torch.cuda.graph(graph, stream=stream, pool=pool, capture_error_mode="thread_local"):
                    walk.run(steps)
                    if len(self._graphs) == len(groups) - 1:
                        self._outputs = walk.outputs()
                self._graphs.append(graph)
        self._fetching = OutputStaging(self._outputs)

    def replay(self, inputs: Sequence[Tensor], state: DeviceState) -> list[Tensor]:
        pieces = self._staging.begin(inputs)
        for number, graph in enumerate(self._graphs):
            if number < self._parts:
                self._staging.bring(pieces, number)
            if number and self._exchanges:
                state.exchange_gradients()
            graph.replay()
        if self._wait is not None:
            done = torch.cuda.Event()
            done.record()
            self._wait(done.query)
        return self._fetching.fetch(self._outputs)


def _waiting(state: DeviceState, seconds: float) -> Wait | None:
    """How to wait for a call with exchanges that the card itself makes; None if it makes none."""
    exchange = None if state.exchange is None else state.card_exchange
    if exchange is None or not exchange.is_possible(state.flat_gradients):
        return None
    return lambda is_done: exchange.wait(is_done, seconds)


def can_be_recorded(computation: Computation, device: torch.device) -> bool:
    """Whether CUDA can record it: not the eager tier's Python, nor operations that need the host or another card."""
    if computation.graph is None:
        return False
    unsafe, here = torch.Tag.cudagraph_unsafe, (None, device)
    return not any(
        unsafe in getattr(node.target, "tags", ()) or node.kwargs.get("device") not in here
        for node in computation.graph.graph.nodes
    )


def _parts(schedule: Schedule, inputs: Sequence[Tensor]) -> int:
    """How many graphs a call is divided into; each has the same number of device iterations."""
    volume = sum(tensor.nbytes for tensor in inputs)
    wanted = min(_PARTS, schedule.iterations, volume // _WORTH_A_PART)
    return next((parts for parts in range(wanted, 1, -1) if schedule.iterations % parts == 0), 1)


def between_exchanges(schedule: Schedule) -> list[tuple[Step, ...]]:
    """The steps of a schedule in groups: instances exchange gradients before each group except the first."""
    groups: list[list[Step]] = [[]]
    for step in schedule.steps:
        if step.action is Action.UPDATE:
            groups.append([])
        groups[-1].append(step)
    return [tuple(group) for group in groups]


@contextmanager
def without_exchange(state: DeviceState) -> Iterator[None]:
    """While steps are recorded: instances exchange gradients only when the recording is replayed."""
    exchange, state.exchange = state.exchange, None
    try:
        yield
    finally:
        state.exchange = exchange


@contextmanager
def nothing_is_done(state: DeviceState) -> Iterator[None]:
    """While updates are recorded: an interrupted one has changed nothing."""
    try:
        yield
    finally:
        state.torn = NOTHING


@contextmanager
def trying_algorithms() -> Iterator[None]:
    """Let cuDNN measure its convolutions, unless the user wants the same ones every time."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = before or not torch.backends.cudnn.deterministic
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before
