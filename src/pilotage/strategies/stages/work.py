"""One stage of a pipeline at work: forward and backward of each micro-batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pilotage.capture.functions.randomness import undisturbed_generators
from pilotage.capture.steps import pool
from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.state import DeviceState
from pilotage.execution.synthetic_inputs import made_up
from pilotage.execution.walk import Call
from pilotage.passes.stage_graphs import StageGraph, StageGraphs
from pilotage.program.graphs.straight_line import straight_line
from pilotage.program.layout import Section
from pilotage.program.program import Action, Computation, Program
from pilotage.program.schedule import Step
from pilotage.program.specification import TensorSpec
from pilotage.strategies.stages.messages import Message


@dataclass(frozen=True, slots=True)
class GraphFailure:
    """An error in the graph of a stage."""

    number: int
    """The number of the micro-batch in its round."""

    computation: Computation
    error: Exception


@dataclass(frozen=True, slots=True)
class _Round:
    """What a round of micro-batches works on."""

    state: DeviceState
    streams: RandomStreams
    steps: Sequence[Step]
    batches: Sequence[Sequence[Tensor]]

    def batch(self, number: int) -> Sequence[Tensor]:
        """The inputs of a micro-batch."""
        position = self.steps[number].micro_batch
        assert position is not None
        return self.batches[position]


class StageWork:
    """Runs the graphs of one stage, pools gradients, and keeps the outputs and saved values of each micro-batch.

    Large because forward and backward of a micro-batch share what is kept between them.
    """

    def __init__(self, program: Program, part: StageGraphs, sections: Sequence[Section], device: torch.device) -> None:
        self._draws_random_numbers = program.draws_random_numbers
        self._layout = program.layout
        self._device = device
        self._part = part
        self._sections = tuple(sections)
        self.carrier_device = device
        """The device of tensors that are sent to other stages."""
        self._forward = _HalfWork(Action.FORWARD, part.forward)
        self._backward = None if part.backward is None else _HalfWork(Action.BACKWARD, part.backward)
        self._is_sampled = False
        self._sample: dict[Action, Sequence[Tensor]] = {}
        self._kept: dict[int, list[Tensor]] = {}
        self._begun = 0
        self.outputs: list[dict[int, Tensor]] = []
        """The outputs of each micro-batch of the current round for the host, by number."""
        self.failure: GraphFailure | None = None
        """An error in a graph of the current round, as opposed to an exchange."""

    def use(self, calls: Mapping[Action, Call]) -> None:
        """Compute by other functions than the graphs from now on; by the graphs where ``calls`` has none."""
        self._sample, self._is_sampled = {}, False
        self._forward.use(calls.get(Action.FORWARD))
        if self._backward is not None:
            self._backward.use(calls.get(Action.BACKWARD))

    @property
    def trains(self) -> bool:
        """Whether micro-batches also go backwards."""
        return self._backward is not None

    @property
    def crossings(self) -> tuple[object, object]:
        """Shapes and types of what is exchanged with the previous stage, and with the next one."""
        forward, backward = self._part.forward, self._part.backward
        back, forth = ((), ()) if backward is None else (backward.sent, backward.received)
        return (_plain(forward.received), _plain(back)), (_plain(forward.sent), _plain(forth))

    @property
    def sizes(self) -> tuple[int, int]:
        """The sizes of the messages to and from the previous stage, and the next one."""
        forward, backward = self._forward, self._backward
        before = max(forward.received.size, 0 if backward is None else backward.sent.size, 1)
        behind = max(forward.sent.size, 0 if backward is None else backward.received.size, 1)
        return before, behind

    def begin(
        self, state: DeviceState, streams: RandomStreams, steps: Sequence[Step], batches: Sequence[Sequence[Tensor]]
    ) -> None:
        """Prepare a round of micro-batches."""
        self._round = _Round(state, streams, steps, batches)
        self._begun = 0
        self._kept.clear()
        self.outputs = [{} for _ in steps]
        self.failure = None

    def keep_sample(self) -> None:
        """Keep what forward and backward take of one micro-batch of the next call."""
        self._is_sampled = True

    def take_sample(self) -> dict[Action, Sequence[Tensor]]:
        """What was kept, for backward too if the stage trains; empty if there was no call since."""
        if Action.FORWARD not in self._sample or (self._backward is not None and Action.BACKWARD not in self._sample):
            return {}
        found, self._sample, self._is_sampled = self._sample, {}, False
        return found

    @torch.no_grad()
    def made_up_sample(self, batch: Sequence[Tensor]) -> dict[Action, Sequence[Tensor]]:
        """What forward and backward may take after the state: the state and what other stages send are made up."""
        generator = torch.Generator().manual_seed(0)
        given = [*batch, *self._forward.made_up_messages(generator)]
        samples: dict[Action, Sequence[Tensor]] = {Action.FORWARD: given}
        if self._backward is None:
            return samples
        specifications = [each for section in self._sections for each in self._layout.section(section)]
        held = [made_up(each.empty(torch.device("meta")), generator) for each in specifications]
        arguments = [tensor.to(self._device) for tensor in (*held, *given)]
        with undisturbed_generators(), torch.enable_grad():
            _, _, kept = self._forward.run_graph(arguments)
        samples[Action.BACKWARD] = [*kept, *self._backward.made_up_messages(generator)]
        return samples

    def take_number(self) -> int:
        """The number of the next micro-batch; in every order they begin one after the other."""
        self._begun += 1
        return self._begun - 1

    def forward(self, number: int, carrier: Tensor) -> Tensor:
        """Run forward on one micro-batch and the previous stage's message; returns the message to the next one."""
        sent, outputs, kept = self._run(self._forward, number, self._round.batch(number), carrier)
        if self._backward is not None:
            self._kept[number] = kept
        self._keep_outputs(number, self._part.forward, outputs, carrier)
        return self._forward.sent.pack(sent, self.carrier_device, self.sizes[1])

    def backward(self, number: int, carrier: Tensor) -> Tensor:
        """Run backward on one micro-batch and the next stage's message; returns the message to the previous one."""
        assert self._backward is not None
        assert self._part.backward is not None
        sent, outputs, gradients = self._run(self._backward, number, self._kept.pop(number), carrier)
        self._keep_outputs(number, self._part.backward, outputs, carrier)
        with torch.no_grad():
            state = self._round.state
            pool(state.pools, dict(zip(self._part.gradients, gradients, strict=True)), state.counters)
        return self._backward.sent.pack(sent, self.carrier_device, self.sizes[0])

    def _run(
        self, half: _HalfWork, number: int, given: Sequence[Tensor], carrier: Tensor
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        state, replica = self._round.state, self._round.steps[number].replica
        received = [tensor.to(state.device) for tensor in half.received.unpack(carrier.detach())]
        arguments = [*state.arguments(self._sections, replica), *given, *received]
        if self._is_sampled and half.action not in self._sample:
            self._sample[half.action] = [tensor.clone() for tensor in (*given, *received)]
        try:
            # As in other programs: some kernels return what backward needs only where gradients are enabled.
            with (
                torch.enable_grad(),
                self._round.streams.of_replica(replica) if self._draws_random_numbers else nullcontext(),
            ):
                return half.run(arguments)
        except (RuntimeError, MemoryError) as error:
            self.failure = GraphFailure(number, Computation(sections=self._sections, graph=half.graph), error)
            raise

    def _keep_outputs(self, number: int, half: StageGraph, outputs: Sequence[Tensor], carrier: Tensor) -> None:
        memory = carrier.untyped_storage().data_ptr()
        for position, output in zip(half.outputs, outputs, strict=True):
            # The next round overwrites the received message.
            is_passing = output.untyped_storage().data_ptr() == memory
            self.outputs[number][position] = output.clone() if is_passing else output


class _HalfWork:
    """The graph of a forward or a backward, ready to be called."""

    def __init__(self, action: Action, half: StageGraph) -> None:
        self.action = action
        self._half = half
        self.received, self.sent = Message(half.received), Message(half.sent)
        self.graph = half.graph
        self.use(None)
        self._sent, self._outputs = len(half.sent), len(half.outputs)

    def use(self, call: Call | None) -> None:
        """Compute by another function than the graph."""
        self._run = straight_line(self.graph) if call is None else call

    def run(self, arguments: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """The results to send, those for the host, and those to keep for backward."""
        return self._divided(self._run(*arguments))

    def run_graph(self, arguments: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """The results of the graph, whatever function is in use."""
        return self._divided(straight_line(self.graph)(*arguments))

    def made_up_messages(self, generator: torch.Generator) -> list[Tensor]:
        """Tensors like those that are received."""
        return [made_up(each.empty(torch.device("meta")), generator) for each in self._half.received]

    def _divided(self, results: list[Tensor]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        end = self._sent + self._outputs
        return results[: self._sent], results[self._sent : end], results[end:]


class StageModule(nn.Module):
    """A stage as torch's pipelining expects it: a module that maps one tensor to another, with a backward."""

    def __init__(self, work: StageWork) -> None:
        super().__init__()
        self._work = work
        self._start = torch.zeros((), requires_grad=True)
        """Makes autograd reach the first stage, which receives nothing that needs a gradient."""

    def forward(self, carrier: Tensor) -> Tensor:
        """Run the stage on the previous one's message."""
        number = self._work.take_number()
        if not self._work.trains:
            return self._work.forward(number, carrier)
        result: Tensor = _Passage.apply(carrier, self._start, self._work, number)  # type: ignore[no-untyped-call]
        return result


class _Passage(torch.autograd.Function):
    """Forward and backward of one micro-batch, as captured."""

    @staticmethod
    def forward(ctx: Any, carrier: Tensor, start: Tensor, work: StageWork, number: int) -> Tensor:
        ctx.work, ctx.number = work, number
        return work.forward(number, carrier)

    @staticmethod
    def backward(ctx: Any, carrier: Tensor) -> tuple[Tensor | None, None, None, None]:
        result = ctx.work.backward(ctx.number, carrier)
        return result if ctx.needs_input_grad[0] else None, None, None, None


def on_device(device: torch.device) -> AbstractContextManager[object]:
    """Make a card current for work that names no device."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _plain(specifications: Sequence[TensorSpec]) -> tuple[object, ...]:
    return tuple(each.plain for each in specifications)
