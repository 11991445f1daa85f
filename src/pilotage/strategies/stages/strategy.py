"""The strategy of a pipeline: several micro-batches pass through stages at the same time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby

import torch
from torch import Tensor

from pilotage.capture.functions.randomness import undisturbed_generators
from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.spread_state import SpreadState
from pilotage.execution.state import DeviceState
from pilotage.execution.walk import Call, Results, StepFailure, micro_batches_of
from pilotage.interrupts import INTERRUPTS
from pilotage.optim.rule import OptimizerPlan
from pilotage.passes.stage_program import StageProgram
from pilotage.passes.stage_to_compile import CompilableStage, compilable_stage
from pilotage.passes.to_device import to_device
from pilotage.program.program import Action, Computation, Program
from pilotage.program.schedule import Schedule, Step
from pilotage.program.step_function import NOT_FINITE
from pilotage.strategies.stages.transport import Transport
from pilotage.strategies.stages.update import StageUpdate
from pilotage.strategies.stages.work import StageWork, on_device
from pilotage.strategies.strategy import Code, Setup, detached


class Pipeline:
    """Runs the stages of this process: all of them on its cards, or one of them among other processes.

    Large because it is the strategy for both transports, with the methods that each strategy has.
    """

    needs_graph = ""
    times = None

    def __init__(
        self,
        program: Program,
        schedule: Schedule,
        cuts: Sequence[StageProgram],
        devices: Sequence[torch.device],
        transport: Transport,
        setup: Setup,
    ) -> None:
        """``cuts`` and ``devices`` are those of this process's stages."""
        self.program = program
        self.schedule = schedule
        self.devices = tuple(devices)
        self.state: SpreadState | None = None
        self._cuts = cuts
        self._transport = transport
        self._setup = setup
        self._looks_at_losses = self._step.returns_loss_check
        self._works = [
            StageWork(cut.program, cut.graphs, self._step.sections, device)
            for cut, device in zip(cuts, devices, strict=True)
        ]
        self._updates = [StageUpdate(cut) for cut in cuts] if program.trains else []
        self._codes: Sequence[Code | None] = [None] * len(cuts)
        self._has_failed = False
        """Whether the last call was not completed."""

    @cached_property
    def _step(self) -> Computation:
        """The computation that the stages divide among themselves."""
        return next(iter(self._cuts[0].program.computations.values()))

    @cached_property
    def _outputs(self) -> list[int]:
        """The outputs that this process's stages compute."""
        owners, local = self._cuts[0].graphs.owners, self._transport.local_stages
        return [number for number in self._cuts[0].outputs if owners[number] in local]

    @cached_property
    def _constants(self) -> list[int]:
        """Which of these outputs are the same in every step."""
        constants = self._cuts[0].program.constant_outputs
        return [self._outputs.index(number) for number in constants if number in self._outputs]

    def attach(self, plan: OptimizerPlan | None) -> SpreadState:
        """Allocate the state of this process's stages; the weights are still to be loaded."""
        replicas, exchange, pools = self._setup.replicas, self._setup.exchange, plan is not None
        self.state = SpreadState(
            [
                DeviceState(cut.program.layout, plan, device, replicas, pools, exchange=exchange)
                for cut, device in zip(self._cuts, self.devices, strict=True)
            ]
        )
        return self.state

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run the whole schedule on inputs of the host and return the outputs of all stages there."""
        state, reconnect = self.state, self._has_failed
        if state is None:
            raise detached()
        try:
            self._has_failed = True
            outputs = self._run(state, self._transport.begin_call(self._works, inputs, reconnect=reconnect))
            self._has_failed = False
        except BaseException:
            # Gradients of an update that never came must not leak into the next one.
            state.forget_gradients()
            raise
        return outputs

    def _run(self, state: SpreadState, inputs: Sequence[Tensor]) -> list[Tensor]:
        streams = [self._setup.streams.on_device(device, range(self._setup.replicas)) for device in self.devices]
        batches = [self._batches(stage, inputs) for stage in range(len(self.devices))]
        results, finite, done = Results(self.schedule), True, 0
        state.updates_of_call = 0
        for is_update, group in groupby(self.schedule.steps, lambda step: step.action is Action.UPDATE):
            steps = list(group)
            if is_update:
                self._stop_at_losses(steps[0], done, finite=finite)
                self._update(state, streams, steps[0].replica)
                INTERRUPTS.deliver_pending()
            else:
                for work, own, there, here in zip(self._works, state.parts, streams, batches, strict=True):
                    work.begin(own, there, steps, here)
                self._run_round(steps, done)
                finite = self._collect(results, steps) and finite
            done += len(steps)
        computed = [output.to("cpu") for output in results.together(self._constants)]
        outputs, all_finite = self._transport.join_outputs(computed, finite=finite)
        if not all_finite and self._looks_at_losses:
            self._looks_at_losses = False
            self._setup.on_failure(self._late_failure(self.schedule.steps[-1], done), RuntimeError(NOT_FINITE))
        return outputs

    def _batches(self, number: int, inputs: Sequence[Tensor]) -> list[Sequence[Tensor]]:
        """The micro-batches where one of this process's stages needs them."""
        needed, device = self._cuts[number].graphs.inputs, self.devices[number]
        is_first = self._transport.local_stages[number] == 0
        there = [
            tensor.to(device, non_blocking=True) if is_first or position in needed else tensor
            for position, tensor in enumerate(inputs)
        ]
        return micro_batches_of(there, self.schedule.micro_batches)

    def _run_round(self, steps: Sequence[Step], done: int) -> None:
        try:
            self._transport.run_round(self._works)
        except (RuntimeError, MemoryError):
            failure = next((work.failure for work in self._works if work.failure is not None), None)
            if failure is None:
                raise
            step, number = steps[failure.number], done + failure.number
            raise StepFailure(step, number, failure.computation, [], self._setup.streams) from failure.error

    def _collect(self, results: Results, steps: Sequence[Step]) -> bool:
        """Take the outputs of a round; returns whether all losses of this process were finite."""
        finite, flag = True, self._cuts[0].flag
        for number, step in enumerate(steps):
            found = {position: output for work in self._works for position, output in work.outputs[number].items()}
            if self._looks_at_losses and flag in found:
                finite = bool(found[flag]) and finite
            if step.result is not None:
                results.put(step.result, [found[position] for position in self._outputs], self._constants)
        return finite

    def _stop_at_losses(self, step: Step, number: int, *, finite: bool) -> None:
        if self._setup.stops_at_losses and self._looks_at_losses and any(self._transport.gather([not finite])):
            raise self._late_failure(step, number) from RuntimeError(NOT_FINITE)

    def _late_failure(self, step: Step, number: int) -> StepFailure:
        return StepFailure(step, number, self._step, [], self._setup.streams, is_late=True)

    def _update(self, state: SpreadState, streams: Sequence[RandomStreams], replica: int) -> None:
        for own in state.parts:
            own.exchange_gradients()
        if self._updates[0].bounds_norm(state.parts[0]):
            norms = self._transport.gather([StageUpdate.norm(own) for own in state.parts])
            for update, own in zip(self._updates, state.parts, strict=True):
                update.clip(own, norms)
        state.begin_update()
        for update, own, there in zip(self._updates, state.parts, streams, strict=True):
            with on_device(own.device):
                update.run(own, there, replica)
        state.end_update()
        state.updates_of_call += 1

    def with_schedule(self, schedule: Schedule) -> Pipeline:
        """The same program on the same state, with another schedule."""
        transport = self._transport.again(micro_batches_per_round(schedule))
        other = Pipeline(self.program, schedule, self._cuts, self.devices, transport, self._setup)
        other.state = self.state
        other.replace(self.program, self._codes)
        return other

    def weights(self) -> Mapping[str, Tensor]:
        """The weights and buffers of all stages."""
        if self.state is None:
            raise detached()
        return self._transport.join_weights({**self.state.parameters, **self.state.buffers()})

    @cached_property
    def _compilable(self) -> list[CompilableStage]:
        return [compilable_stage(cut, self._step.sections) for cut in self._cuts]

    def programs_to_compile(self, captured: Program) -> Sequence[Program]:
        """The programs of this process's stages, all of them for its first device."""
        first = self.devices[0]
        return [
            to_device(stage.program, device, first)
            for stage, device in zip(self._compilable, self.devices, strict=True)
        ]

    def inputs_to_compile(self, number: int, micro_batch: Sequence[Tensor]) -> dict[Action, Sequence[Tensor]]:
        """What forward and backward of a stage took in a call; before the state is allocated, in a rehearsal."""
        work = self._works[number]
        if self.state is None:
            return self._rehearse(micro_batch)[number] if len(self._works) > 1 else work.made_up_sample(micro_batch)
        found = work.take_sample()
        if not found:
            work.keep_sample()
        return found

    def _rehearse(self, micro_batch: Sequence[Tensor]) -> list[dict[Action, Sequence[Tensor]]]:
        """What the stages take of a micro-batch that passes through all of them, with weights that nothing changes."""
        rehearsal = self.with_schedule(replace(self.schedule, steps=self.schedule.steps[:1], micro_batches=1))
        with undisturbed_generators():
            return rehearsal._samples(micro_batch)

    def _samples(self, micro_batch: Sequence[Tensor]) -> list[dict[Action, Sequence[Tensor]]]:
        state, weights = self.attach(self.program.plan), self._setup.host_weights()
        state.load_weights(weights, weights)
        for number, (work, own) in enumerate(zip(self._works, state.parts, strict=True)):
            work.keep_sample()
            work.begin(own, RandomStreams(own.device), self.schedule.steps, self._batches(number, micro_batch))
        self._transport.run_round(self._works)
        return [work.take_sample() for work in self._works]

    def replace(self, program: Program, codes: Sequence[Code | None]) -> None:
        """Run the stages of this process by compiled code from now on, or by their graphs."""
        self._codes = codes
        for number, (stage, code, device) in enumerate(zip(self._compilable, codes, self.devices, strict=True)):
            calls: dict[Action, Call] = {} if code is None else stage.calls(code(device))
            self._works[number].use(calls)
            if self._updates:
                self._updates[number].use(calls.get(Action.UPDATE))

    def detach(self) -> None:
        """Free the state of this process's stages."""
        self.state = None


def micro_batches_per_round(schedule: Schedule) -> int:
    """How many micro-batches pass through the stages before the first update, or in total."""
    return next(
        len(list(steps))
        for is_update, steps in groupby(schedule.steps, lambda step: step.action is Action.UPDATE)
        if not is_update
    )
