"""A program whose stages are processes of their own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

import torch
from torch import Tensor

from pilotage.distributed.pipeline_group import Line
from pilotage.errors import DistributedError
from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.state import DeviceState
from pilotage.execution.walk import Forgive, Results, StepFailure, micro_batches_of
from pilotage.interrupts import INTERRUPTS
from pilotage.options.choices import PipelineOrder
from pilotage.passes.cutting import StageProgram
from pilotage.program.program import Action
from pilotage.program.schedule import Schedule, Step
from pilotage.program.specification import TensorSpec
from pilotage.program.step_function import NOT_FINITE
from pilotage.strategies.stages.messages import Message
from pilotage.strategies.stages.rounds import Rounds, order_for
from pilotage.strategies.stages.update import StageUpdate
from pilotage.strategies.stages.work import StageWork


class PipelinedExecutable:
    """Runs one stage of a program, in step with the processes of the other stages."""

    def __init__(
        self,
        cut: StageProgram,
        schedule: Schedule,
        line: Line,
        forgive: Forgive,
        *,
        order: PipelineOrder | None,
        stops_at_losses: bool,
    ) -> None:
        self._cut = cut
        self._program, self._part = cut.program, cut.part
        self._schedule = schedule
        self._line = line
        self._forgive = forgive
        self._stops_at_losses = stops_at_losses
        self._first = next(iter(self._program.computations.values()))
        self._looks_at_losses = self._first.checks_late
        self._own = [number for number in cut.outputs if self._part.owners[number] == line.stage]
        """The outputs that this stage has."""
        self._constants = [self._own.index(number) for number in self._program.constant_outputs if number in self._own]
        self._round = next(
            len(list(steps)) for is_update, steps in groupby(schedule.steps, _is_update) if not is_update
        )
        self._order = order_for(order, self._round, line.stages, trains=self._program.trains)
        self._update = StageUpdate(cut) if self._program.trains else None
        self._rounds: Rounds | None = None
        self._messages: list[Message] = []
        """Of each stage's outputs, once a call has shown what they look like."""

    def run(self, state: DeviceState, streams: RandomStreams, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run one whole schedule on inputs of the host, and bring the outputs of all stages back."""
        try:
            return self._run(state, streams, self._shared(inputs))
        except BaseException:
            # Gradients of an update that never came must not leak into the next one.
            state.forget_gradients()
            self._rounds = None
            raise

    def _run(self, state: DeviceState, streams: RandomStreams, inputs: Sequence[Tensor]) -> list[Tensor]:
        rounds = self._rounds = self._rounds or self._begin(state)
        moved = [tensor.to(state.device, non_blocking=True) for tensor in inputs]
        batches = micro_batches_of(moved, self._schedule.micro_batches)
        results, finite, done = Results(self._schedule), True, 0
        state.updates_of_call = 0
        for is_update, group in groupby(self._schedule.steps, _is_update):
            steps = list(group)
            if is_update:
                self._stop_at_losses(steps[0], done, streams, finite=finite)
                self._update_weights(steps[0], state, streams)
                INTERRUPTS.let_in()
            else:
                rounds.work.begin(state, streams, steps, batches)
                self._pass_through(rounds, steps, done, streams)
                finite = self._put(results, steps, rounds.work) and finite
            done += len(steps)
        own = [output.to("cpu") for output in results.together(self._constants)]
        outputs, all_finite = self._brought_together(own, finite=finite)
        if not all_finite and self._looks_at_losses:
            self._looks_at_losses = False
            failure = StepFailure(self._schedule.steps[-1], done, self._first, [], streams, is_late=True)
            self._forgive(failure, RuntimeError(NOT_FINITE))
        return outputs

    # Setting up

    def _begin(self, state: DeviceState) -> Rounds:
        group, device = self._line.transport(state.device)
        work = StageWork(self._program, self._part, self._first.sections, device)
        self._refuse_other_neighbours(work)
        return Rounds(
            work, self._line.stage, self._line.stages, group, device, self._round, self._order, self._line.wait
        )

    def _refuse_other_neighbours(self, work: StageWork) -> None:
        crossings = self._line.gather(work.crossings)
        for stage, (mine, theirs) in enumerate(pairwise(crossings)):
            if mine[1] != theirs[0]:
                raise DistributedError(
                    f"What stage {stage} sends is not what stage {stage + 1} expects. All processes of an instance have to build the "
                    "same model and call it with batches of the same shape."
                )

    def _shared(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The inputs of the first stage, wherever another one uses them."""
        shared = list(inputs)
        for position in self._part.inputs:
            if self._line.stage > 0:
                # Not in the tensor of the user, who may have other plans with it.
                shared[position] = torch.empty_like(shared[position], device="cpu")
            self._line.broadcast([shared[position]])
        return shared

    # Working

    def _pass_through(self, rounds: Rounds, steps: Sequence[Step], done: int, streams: RandomStreams) -> None:
        try:
            with self._line.peers.explained("passing micro-batches on"):
                rounds.run()
        except DistributedError:
            failure = rounds.work.failure
            if failure is None:
                raise
            step = steps[failure.number]
            raise StepFailure(step, done + failure.number, failure.computation, [], streams) from failure.error

    def _put(self, results: Results, steps: Sequence[Step], work: StageWork) -> bool:
        """Take the outputs of a round; tells whether all losses were finite, as far as this stage sees them."""
        finite = True
        for step, found in zip(steps, work.outputs, strict=True):
            if self._looks_at_losses and self._cut.flag in found:
                finite = bool(found[self._cut.flag]) and finite
            if step.result is not None:
                results.put(step.result, [found[number] for number in self._own], self._constants)
        return finite

    def _stop_at_losses(self, step: Step, number: int, streams: RandomStreams, *, finite: bool) -> None:
        if self._stops_at_losses and self._looks_at_losses and self._line.any(not finite):
            raise StepFailure(step, number, self._first, [], streams, is_late=True) from RuntimeError(NOT_FINITE)

    def _update_weights(self, step: Step, state: DeviceState, streams: RandomStreams) -> None:
        assert self._update is not None
        state.exchange_gradients()
        if self._update.bounds_norm(state):
            self._update.clip(state, self._line.gather(self._update.norm(state)))
        state.begin_update()
        self._update.run(state, streams, step.replica)
        state.end_update()
        state.updates_of_call += 1

    def _brought_together(self, own: list[Tensor], *, finite: bool) -> tuple[list[Tensor], bool]:
        """The outputs of all stages, and whether all of them have seen finite losses."""
        mine = [*own, torch.tensor(finite)]
        if not self._messages:
            everyone = self._line.gather([TensorSpec.of(tensor).dense.plain for tensor in mine])
            self._messages = [Message(tuple(TensorSpec(*each) for each in theirs)) for theirs in everyone]
        outputs: dict[int, Tensor] = dict(zip(self._own, own, strict=True))
        for stage in sorted(set(self._part.owners)):
            theirs, is_finite = self._heard_from(stage, mine)
            numbers = [number for number in self._cut.outputs if self._part.owners[number] == stage]
            if stage != self._line.stage:
                outputs |= dict(zip(numbers, theirs, strict=True))
            finite = finite and is_finite
        return [outputs[number] for number in self._cut.outputs], finite

    def _heard_from(self, stage: int, mine: list[Tensor]) -> tuple[list[Tensor], bool]:
        message = self._messages[stage]
        here = torch.device("cpu")
        carrier = message.pack(mine, here) if stage == self._line.stage else torch.empty(message.size)
        self._line.broadcast([carrier], stage)
        *tensors, finite = message.unpack(carrier)
        # Tensors of their own, and not parts of one that holds all of them.
        return [tensor.clone() for tensor in tensors], bool(finite)


def _is_update(step: Step) -> bool:
    return step.action is Action.UPDATE
