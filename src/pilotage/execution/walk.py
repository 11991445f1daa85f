"""Running a schedule, step by step."""

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
from pilotage.execution.state import NOTHING, DeviceState
from pilotage.execution.timing import CallTimes
from pilotage.interrupts import INTERRUPTS
from pilotage.program.graphs.rewrites import without_checks
from pilotage.program.graphs.straight_line import straight_line
from pilotage.program.program import Action, Computation, Program
from pilotage.program.schedule import Schedule, Step
from pilotage.program.step_function import NOT_FINITE

UPDATING = frozenset({Action.TRAIN, Action.UPDATE})
"""Actions that update the weights."""

Call = Callable[..., list[Tensor]]
Calls = Mapping[Action, Call]
"""The function for each action."""


class StepFailure(Exception):
    """The error of a step, with everything that is needed to explain it."""

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
        """Whether the step has completed, so that its arguments have changed."""


OnFailure = Callable[[StepFailure, Exception], bool]
"""Called with a failure; True means: continue without checking losses."""


class WalkedExecutable:
    """Runs a program's graphs, or in the eager tier its Python, one step after the other."""

    def __init__(self, program: Program, schedule: Schedule, on_failure: OnFailure, calls: Calls | None = None) -> None:
        self.program = program
        self._schedule = schedule
        self._only = schedule.steps[0] if [step.result for step in schedule.steps] == [0] else None
        """The only step of the schedule, if nothing has to be split or joined."""
        self._on_failure = on_failure
        self._calls = dict(calls or {action: _call(part) for action, part in program.computations.items()})
        # Compiled code is one piece: it cannot send gradients before it has computed all of them.
        self._early = EarlySender(program, schedule) if calls is None else None
        # Torch counts the writes to a tensor, but does not see those of compiled code.
        self._writes_are_counted = calls is None
        self._looks_late = True
        self._moments: tuple[float, float, float] | None = None
        """When the last call began, had its inputs and its outputs; None if only the device knows."""
        self._finished: Sequence[float] = ()
        self._checked = program.checks_loss
        writes = bool(program.written_inputs or program.written_buffers)
        self._restores = writes or program.draws_random_numbers
        """Whether a step can have changed something before it stops at its loss."""

    def run(self, state: DeviceState, streams: RandomStreams, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run one whole schedule on inputs of the host and return the outputs there."""
        begun, device = time.perf_counter(), state.device
        # Calling `to` on a tensor that is already there costs as much as a small operation.
        moved = [each if each.device == device else each.to(device, non_blocking=True) for each in inputs]
        sent = time.perf_counter()
        try:
            if self._only is not None:
                state.updates_of_call = 0
                outputs = self.run_step(0, self._only, state, streams, moved)
                self._finished = (time.perf_counter(),)
                if self.program.constant_outputs or self.program.outputs is None:
                    outputs = with_own_constants(outputs, self.constants)
            else:
                walk = self.begin(state, streams, moved)
                walk.run(self._schedule.steps, interruptible=True)
                self._finished = walk.finished
                outputs = walk.outputs()
        except BaseException:
            # Gradients of an interrupted update must not leak into the next one.
            state.forget_gradients()
            raise
        outputs = [each if each.is_cpu else each.to("cpu") for each in outputs]
        # A device with its own queue may still be working when the host has issued all steps.
        self._moments = (begun, sent, time.perf_counter()) if device.type == "cpu" else None
        for position in self.program.written_inputs:
            if moved[position] is not inputs[position]:
                inputs[position].copy_(moved[position])
        return outputs

    @property
    def times(self) -> CallTimes | None:
        """The moments of the last call; None if only the device knows them."""
        if self._moments is None:
            return None
        begun, sent, returned = self._moments
        return CallTimes(begun=begun, sent=sent, finished=tuple(self._finished), returned=returned)

    def begin(self, state: DeviceState, streams: RandomStreams, inputs: Sequence[Tensor]) -> Walk:
        """Begin to run a schedule in parts, on inputs that are on the device."""
        return self.begin_with(state, streams, micro_batches_of(inputs, self._schedule.micro_batches))

    def begin_with(self, state: DeviceState, streams: RandomStreams, batches: Sequence[Sequence[Tensor]]) -> Walk:
        """Begin to run a schedule in parts, on inputs that are already split into micro-batches."""
        return Walk(self, self._schedule, state, streams, batches)

    @property
    def constants(self) -> Sequence[int]:
        """Outputs that are the same in every step; the eager tier knows them once it has run one."""
        return self.program.constants

    def run_step(
        self, number: int, step: Step, state: DeviceState, streams: RandomStreams, batch: Sequence[Tensor]
    ) -> list[Tensor]:
        """Run one step, and note if an update was interrupted between its first write and its end."""
        if step.action is Action.UPDATE:
            state.exchange_gradients()
        if step.action not in UPDATING:
            outputs = self._compute(number, step, state, streams, batch)
        else:
            writes = [tensor._version for tensor in state.updated] if self._writes_are_counted else None
            state.torn = state.all_parts
            try:
                outputs = self._compute(number, step, state, streams, batch)
            except BaseException:
                if writes is not None and writes == [tensor._version for tensor in state.updated]:
                    state.torn = NOTHING
                raise
            if step.action is Action.UPDATE:
                state.exchange_updates()
            state.torn = NOTHING
            state.updates_of_call += 1
        if self.program.computations[step.action].returns_loss_check:
            self._look_at(outputs.pop(), number, step, streams)
        return outputs

    def _compute(
        self, number: int, step: Step, state: DeviceState, streams: RandomStreams, batch: Sequence[Tensor]
    ) -> list[Tensor]:
        """Call the code of a step; if it stops at its loss and may continue, call it again without the check."""
        computation = self.program.computations[step.action]
        arguments = [*state.arguments(computation.sections, step.replica, whole=computation.whole), *batch]
        before = self._before(step, state, streams, batch) if self._checked and self._restores else None
        call = self._calls[step.action]
        if state.exchange is not None and self._early is not None:
            call = self._early.call(number, state, checked=self._checked) or call
        try:
            if not self.program.draws_random_numbers or streams.shared:
                return call(*arguments)
            with streams.of_replica(step.replica):
                return call(*arguments)
        except DistributedError:
            raise
        except (RuntimeError, IndexError, MemoryError) as error:
            if before is not None:
                before.restore(streams)
            failure = StepFailure(step, number, computation, arguments, streams)
            if not self._on_failure(failure, error):
                raise failure from error
        self._stop_checking()
        return self._compute(number, step, state, streams, batch)

    def _look_at(self, finite: Tensor, number: int, step: Step, streams: RandomStreams) -> None:
        if self._looks_late and not bool(finite):
            computation = self.program.computations[step.action]
            self._looks_late = False
            self._on_failure(
                StepFailure(step, number, computation, [], streams, is_late=True), RuntimeError(NOT_FINITE)
            )

    def _before(
        self, step: Step, state: DeviceState, streams: RandomStreams, batch: Sequence[Tensor]
    ) -> _Before | None:
        random = self.program.draws_random_numbers and streams.shared
        written = self._written(step, state, batch)
        if not random and not written:
            return None
        return _Before([(tensor, tensor.clone()) for tensor in written], streams.states if random else None)

    def _written(self, step: Step, state: DeviceState, batch: Sequence[Tensor]) -> list[Tensor]:
        """What a step may change before it checks its loss."""
        if not batch:
            return []
        inputs = [batch[position] for position in self.program.written_inputs]
        if not self.program.written_buffers:
            return inputs
        buffers = state.buffers(step.replica)
        return [*inputs, *(buffers[name] for name in self.program.written_buffers)]

    def _stop_checking(self) -> None:
        self._checked = False
        for action, computation in self.program.computations.items():
            if computation.graph is not None:
                self._calls[action] = straight_line(without_checks(computation.graph))
            elif computation.function is not None:
                self._calls[action] = unchecked(computation.function)


class Walk:
    """A schedule that has begun to run."""

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

    def run(self, steps: Sequence[Step], *, interruptible: bool = False) -> None:
        """Run the next steps; if ``interruptible``, signals are handled between updates."""
        for step in steps:
            batch = [] if step.micro_batch is None else self._batches[step.micro_batch]
            outputs = self._executable.run_step(self._done, step, self._state, self._streams, batch)
            self._done += 1
            if step.result is not None:
                self.finished[step.result] = time.perf_counter()
                self._results.put(step.result, outputs, self._executable.constants)
            # Only between updates: half an update cannot be continued.
            if interruptible and step.action is not Action.ACCUMULATE and self._done < self._last:
                INTERRUPTS.deliver_pending()

    def outputs(self) -> list[Tensor]:
        """The outputs of one call."""
        return self._results.together(self._executable.constants)

    @property
    def parts(self) -> list[list[Tensor]]:
        """The outputs of one call, part by part."""
        return self._results.parts


@dataclass(frozen=True, slots=True)
class _Before:
    """Copies of what a step may change before it stops at its loss."""

    tensors: list[tuple[Tensor, Tensor]]
    """Pairs of a tensor and its earlier value."""

    streams: list[Tensor] | None

    def restore(self, streams: RandomStreams) -> None:
        for tensor, value in self.tensors:
            tensor.copy_(value)
        if self.streams is not None:
            streams.states = self.streams


class Results:
    """Collects the outputs of micro-batches."""

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
        """The collected outputs, in the order of their places."""
        return [part for part in self._parts if part is not None]

    def together(self, constants: Sequence[int]) -> list[Tensor]:
        """The joined outputs, as one call returns them."""
        parts = self.parts
        if len(parts) == 1:
            return parts[0]
        joined = [_join(pieces) for pieces in zip(*parts, strict=True)]
        for position in constants:
            joined[position] = parts[0][position]
        return joined


def with_own_constants(outputs: list[Tensor], constants: Sequence[int]) -> list[Tensor]:
    """The outputs with copies of constants: what the user does to a result must not reach the program."""
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
