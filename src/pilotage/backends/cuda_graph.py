"""A whole schedule as one CUDA graph."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pilotage.backends.state import DeviceState
from pilotage.backends.streams import RandomStreams
from pilotage.backends.walk import WalkedExecutable
from pilotage.program.program import Program


class CudaGraphExecutable:
    """Walks the schedule on the first call, records it as a CUDA graph on the second, and replays it from then on.

    The first call is real work and at the same time the warm-up that libraries need before they can be recorded.
    """

    def __init__(self, walked: WalkedExecutable, program: Program) -> None:
        self._walked = walked
        self._draws_random_numbers = program.draws_random_numbers
        self._written_inputs = program.written_inputs
        self._stream = torch.cuda.Stream()
        self._state: DeviceState | None = None
        self._recorded: _Recording | None = None

    def run(self, state: DeviceState, streams: RandomStreams, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run one whole schedule."""
        if not streams.shared and self._draws_random_numbers:
            # A stream of one's own is put in place between the steps, which a recording cannot do.
            return self._walked.run(state, streams, inputs)
        if state is not self._state:
            self._state, self._recorded = state, None
            return self._warm_up(state, streams, inputs)
        if self._recorded is None:
            self._recorded = _Recording(self._walked, state, streams, inputs, self._stream, self._written_inputs)
        return self._recorded.replay(inputs)

    def _warm_up(self, state: DeviceState, streams: RandomStreams, inputs: Sequence[Tensor]) -> list[Tensor]:
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            outputs = self._walked.run(state, streams, inputs)
        torch.cuda.current_stream().wait_stream(self._stream)
        return outputs


class _Recording:
    """A CUDA graph with the places that its inputs come from and its outputs go to."""

    def __init__(
        self,
        walked: WalkedExecutable,
        state: DeviceState,
        streams: RandomStreams,
        inputs: Sequence[Tensor],
        stream: torch.cuda.Stream,
        written: Sequence[int],
    ) -> None:
        self._written = written
        self._inputs = [torch.empty_like(tensor, device=state.device) for tensor in inputs]
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, stream=stream):
            self._outputs = walked.run(state, streams, self._inputs)

    def replay(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        for place, tensor in zip(self._inputs, inputs, strict=True):
            place.copy_(tensor, non_blocking=True)
        self._graph.replay()
        for position in self._written:
            inputs[position].copy_(self._inputs[position])
        return self._outputs
