"""Walking a schedule, step by step."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pilotage.capture.steps import unchecked
from pilotage.errors import DistributedError
from pilotage.execution.early import EarlySender
from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.state import DeviceState
from pilotage.execution.timing import CallTimes
from pilotage.interrupts import INTERRUPTS
from pilotage.program.graphs.rewrites import without_checks
from pilotage.program.graphs.straight_line import straight_line
from pilotage.program.program import Action, Computation, Program
from pilotage.program.schedule import Schedule, Step
from pilotage.program.step_function import NOT_FINITE

UPDATING = frozenset({Action.TRAIN, Action.UPDATE})
"""Actions at whose end the weights are those of one more update."""

Call = Callable[..., list[Tensor]]
Calls = Mapping[Action, Call]
"""What runs each action."""


class StepFailure(Exception):
    """A step raised; carries what is needed to find out why."""

    def __init__(
        self,
        step: Step,
        number: int,
        computation: Computation,
        arguments: list[Tensor],
        streams: RandomStreams,
        *,
        is_late: bool = False,
    ) -> None:
        super().__init__(f"step {number} ({step.action.value}) failed")
        self.step = step
        self.number = number
        self.computation = computation
        self.arguments = arguments
        self.streams = streams
        self.is_late = is_late
        """Whether the step has run to its end, and the arguments are no longer those that it began with."""


OnFailure = Callable[[StepFailure, Exception], bool]
"""Called with a failure; True means to go on without checking losses."""


class WalkedExecutable:
    """Runs a program's graphs, or in the eager tier its Python, one step after the other."""

    def __init__(self, program: Program, schedule: Schedule, on_failure: OnFailure, calls: Calls | None = None) -> None:
        self._program = program
        self._schedule = schedule
        self._only = schedule.steps[0] if [step.result for step in schedule.steps] == [0] else None
        """The step that is the whole schedule, where nothing has to be cut and put together."""
        self._on_failure = on_failure
        self._calls = dict(calls or {action: _call(part) for action, part in program.computations.items()})
        # Compiled code is one piece, which cannot be sent from in between.
        self._early = EarlySender(program, schedule) if calls is None else None
        # Torch counts the writes into a tensor; what is written by compiled code, it does not see.
        self._writes_are_counted = calls is None
        self._looks_late = True
        self._moments: tuple[float, float, float] | None = None
        """When the last call began, had its inputs and its outputs; None where only the device knows."""
        self._finished: Sequence[float] = ()
        self._checked = program.checks_loss
        self._writes = bool(program.written_inputs or program.written_buffers)

    def run(self, state: DeviceState, streams: RandomStreams, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run one whole schedule on inputs of the host, and bring the outputs back."""
        begun, device = time.perf_counter(), state.device
        # What is there already is not asked to move: that alone costs as much as a small operation.
        moved = [each if each.device == device else each.to(device, non_blocking=True) for each in inputs]
        sent = time.perf_counter()
        outputs = [each if each.is_cpu else each.to("cpu") for each in self.walk(state, streams, moved)]
        # A device with a queue of its own is not done with a step when the host is.
        self._moments = (begun, sent, time.perf_counter()) if device.type == "cpu" else None
        for position in self._program.written_inputs:
            if moved[position] is not inputs[position]:
                inputs[position].copy_(moved[position])
        return outputs

    @property
    def times(self) -> CallTimes | None:
        """The moments of the last call; None where only the device knows them."""
        if self._moments is None:
            return None
        begun, sent, returned = self._moments
        return CallTimes(begun=begun, sent=sent, finished=tuple(self._finished), returned=returned)

    def walk(self, state: DeviceState, streams: RandomStreams, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run one whole schedule on inputs that are on the device; outputs stay there."""
        try:
            if self._only is not None:
                return self._walk_only(self._only, state, streams, inputs)
            walk = self.begin(state, streams, inputs)
            walk.go_on(self._schedule.steps, can_be_left=True)
            self._finished = walk.finished
            return walk.outputs()
        except BaseException:
            # Gradients of an update that never came must not leak into the next one.
            state.forget_gradients()
            raise

    def _walk_only(
        self, step: Step, state: DeviceState, streams: RandomStreams, inputs: Sequence[Tensor]
    ) -> list[Tensor]:
        state.updates_of_call = 0
        outputs = self.run_step(0, step, state, streams, inputs)
        self._finished = (time.perf_counter(),)
        return with_own_constants(outputs, self.constants)

    def begin(self, state: DeviceState, streams: RandomStreams, inputs: Sequence[Tensor]) -> Walk:
        """Begin to run a schedule that is gone in parts."""
        return self.begin_with(state, streams, micro_batches_of(inputs, self._schedule.micro_batches))

    def begin_with(self, state: DeviceState, streams: RandomStreams, batches: Sequence[Sequence[Tensor]]) -> Walk:
        """The same on inputs that are cut into micro-batches already."""
        return Walk(self, self._schedule, state, streams, batches)

    @property
    def constants(self) -> Sequence[int]:
        """Outputs that are the same in every step; the eager tier knows them once it has run one."""
        if self._program.outputs is not None:
            return self._program.constant_outputs
        first = next(iter(self._program.computations.values())).function
        return () if first is None else first.findings.constant_outputs

    def run_step(
        self, number: int, step: Step, state: DeviceState, streams: RandomStreams, batch: Sequence[Tensor]
    ) -> list[Tensor]:
        """Run one step, and look at its loss where that is left for afterwards."""
        if step.action is Action.UPDATE:
            state.exchange_gradients()
        if step.action in UPDATING:
            outputs = self._run_update(number, step, state, streams, batch)
        else:
            outputs = self._run_step(number, step, state, streams, batch)
        if self._program.computations[step.action].returns_loss_check:
            self._look_at(outputs.pop(), number, step, streams)
        return outputs

    def _run_update(
        self, number: int, step: Step, state: DeviceState, streams: RandomStreams, batch: Sequence[Tensor]
    ) -> list[Tensor]:
        """Run a step that updates the weights, so that one which is broken off in between is known."""
        writes = [tensor._version for tensor in state.updated] if self._writes_are_counted else None
        state.begin_update()
        try:
            outputs = self._run_step(number, step, state, streams, batch)
        except BaseException:
            if writes is not None and writes == [tensor._version for tensor in state.updated]:
                state.end_update()
            raise
        if step.action is Action.UPDATE:
            state.exchange_updates()
        state.end_update()
        state.updates_of_call += 1
        return outputs

    def _run_step(
        self, number: int, step: Step, state: DeviceState, streams: RandomStreams, batch: Sequence[Tensor]
    ) -> list[Tensor]:
        computation = self._program.computations[step.action]
        arguments = [*state.arguments(computation.sections, step.replica, whole=computation.whole), *batch]
        before = self._before(step, state, streams, batch) if self._checked else None
        early = None if self._early is None else self._early.call(number, state, checked=self._checked)
        call = early or self._calls[step.action]
        try:
            if not self._program.draws_random_numbers or streams.shared:
                return call(*arguments)
            with streams.of_replica(step.replica):
                return call(*arguments)
        except DistributedError:
            raise
        except (RuntimeError, MemoryError) as error:
            if before is not None:
                before.restore(streams)
            failure = StepFailure(step, number, computation, arguments, streams)
            if not self._on_failure(failure, error):
                raise failure from error
        self._stop_checking()
        return self._run_step(number, step, state, streams, batch)

    def _look_at(self, finite: Tensor, number: int, step: Step, streams: RandomStreams) -> None:
        if self._looks_late and not bool(finite):
            computation = self._program.computations[step.action]
            self._looks_late = False
            self._on_failure(
                StepFailure(step, number, computation, [], streams, is_late=True), RuntimeError(NOT_FINITE)
            )

    def _before(
        self, step: Step, state: DeviceState, streams: RandomStreams, batch: Sequence[Tensor]
    ) -> _Before | None:
        random = self._program.draws_random_numbers and streams.shared
        written = self._written(step, state, batch) if self._writes else []
        if not random and not written:
            return None
        return _Before([(tensor, tensor.clone()) for tensor in written], streams.states if random else None)

    def _written(self, step: Step, state: DeviceState, batch: Sequence[Tensor]) -> list[Tensor]:
        """What a step may have changed by the time it looks at its loss."""
        if not batch:
            return []
        inputs = [batch[position] for position in self._program.written_inputs]
        if not self._program.written_buffers:
            return inputs
        buffers = state.buffers(step.replica)
        return [*inputs, *(buffers[name] for name in self._program.written_buffers)]

    def _stop_checking(self) -> None:
        self._checked = False
        for action, computation in self._program.computations.items():
            if computation.graph is not None:
                self._calls[action] = straight_line(without_checks(computation.graph))
            elif computation.function is not None:
                self._calls[action] = unchecked(computation.function)


class Walk:
    """A schedule on its way."""

    def __init__(
        self,
        executable: WalkedExecutable,
        schedule: Schedule,
        state: DeviceState,
        streams: RandomStreams,
        batches: Sequence[Sequence[Tensor]],
    ) -> None:
        self._executable = executable
        self._state = state
        self._streams = streams
        self._results = Results(schedule)
        self._batches = batches
        self._done, self._last = 0, len(schedule.steps)
        state.updates_of_call = 0
        self.finished = [0.0] * schedule.results
        """When each part of the outputs was computed."""

    def go_on(self, steps: Sequence[Step], *, can_be_left: bool = False) -> None:
        """Run the next steps; where nobody else has to do the same ones, signals are let in when an update is done."""
        for step in steps:
            batch = [] if step.micro_batch is None else self._batches[step.micro_batch]
            outputs = self._executable.run_step(self._done, step, self._state, self._streams, batch)
            self._done += 1
            if step.result is not None:
                self.finished[step.result] = time.perf_counter()
                self._results.put(step.result, outputs, self._executable.constants)
            # Not in between: the gradients, buffers and random numbers of half an update are no state to go on from.
            if can_be_left and step.action is not Action.ACCUMULATE and self._done < self._last:
                INTERRUPTS.let_in()

    def outputs(self) -> list[Tensor]:
        """What the steps have left for the host."""
        return self._results.together(self._executable.constants)

    @property
    def parts(self) -> list[list[Tensor]]:
        """The same, part by part."""
        return self._results.parts


@dataclass(frozen=True, slots=True)
class _Before:
    """What a step that stops at its loss has already changed, as it was."""

    tensors: list[tuple[Tensor, Tensor]]
    """Each with its value from before."""

    streams: list[Tensor] | None

    def restore(self, streams: RandomStreams) -> None:
        for tensor, value in self.tensors:
            tensor.copy_(value)
        if self.streams is not None:
            streams.states = self.streams


class Results:
    """Outputs on their way back to the host."""

    def __init__(self, schedule: Schedule) -> None:
        self._sums = schedule.sums
        self._parts: list[list[Tensor] | None] = [None] * schedule.results

    def put(self, place: int, outputs: list[Tensor], constants: Sequence[int]) -> None:
        """Take the outputs of one micro-batch."""
        present = self._parts[place]
        if present is None:
            self._parts[place] = with_own_constants(outputs, constants)
            return
        if self._sums:
            outputs = [_add(total, output) for total, output in zip(present, outputs, strict=True)]
        for position in constants:
            outputs[position] = present[position]
        self._parts[place] = outputs

    @property
    def parts(self) -> list[list[Tensor]]:
        """What has been put, in the order of its places."""
        return [part for part in self._parts if part is not None]

    def together(self, constants: Sequence[int]) -> list[Tensor]:
        """What one call returns."""
        parts = self.parts
        if len(parts) == 1:
            return parts[0]
        joined = [_join(pieces) for pieces in zip(*parts, strict=True)]
        for position in constants:
            joined[position] = parts[0][position]
        return joined


def with_own_constants(outputs: list[Tensor], constants: Sequence[int]) -> list[Tensor]:
    """The outputs, with copies of constants: these belong to the program, and what is done to a result must not reach it."""
    for position in constants:
        outputs[position] = outputs[position].clone()
    return outputs


def _call(computation: Computation) -> Call:
    if computation.graph is not None:
        return straight_line(computation.graph)
    assert computation.function is not None
    return computation.function


def micro_batches_of(inputs: Sequence[Tensor], count: int) -> list[Sequence[Tensor]]:
    """The inputs of each micro-batch."""
    if count == 1:
        return [inputs]
    pieces = [tensor.split(tensor.shape[0] // count) for tensor in inputs]
    return [[piece[position] for piece in pieces] for position in range(count)]


def _add(total: Tensor, output: Tensor) -> Tensor:
    return total | output if output.dtype == torch.bool else total + output


def _join(pieces: tuple[Tensor, ...]) -> Tensor:
    return torch.stack(pieces) if pieces[0].dim() == 0 else torch.cat(pieces)
