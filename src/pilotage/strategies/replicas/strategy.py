"""The strategy of replicas that run side by side on several cards of one process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from pilotage.execution.recording_turns import RECORDING
from pilotage.execution.spread_state import SpreadState
from pilotage.execution.state import DeviceState
from pilotage.execution.walk import Results, WalkedExecutable, micro_batches_of
from pilotage.interrupts import INTERRUPTS
from pilotage.optim.rule import OptimizerPlan
from pilotage.passes.returned_loss_check import with_returned_loss_check
from pilotage.passes.to_device import to_device
from pilotage.program.program import Action, Program
from pilotage.program.schedule import Schedule
from pilotage.strategies.replicas.card import CardWorker, MicroBatches, WalkedCard
from pilotage.strategies.replicas.shares import share_out
from pilotage.strategies.replicas.summation import Summation, sum_by_copies
from pilotage.strategies.strategy import Code, Setup, detached, inputs_of_steps


class ReplicasOnCards:
    """Each card runs some replicas; before each update the cards sum their gradients, and all make the same update."""

    needs_graph = ""
    times = None

    def __init__(
        self,
        program: Program,
        schedule: Schedule,
        cards: Sequence[torch.device],
        setup: Setup,
        code: Code | None = None,
    ) -> None:
        """The program was captured for the first card, and so was its compiled ``code``, if given."""
        self.schedule = schedule
        self.devices = tuple(cards)
        self.state: SpreadState | None = None
        self._setup = setup
        self._shares = share_out(schedule, setup.replicas, cards)
        self._workers: Sequence[CardWorker]
        self._sum_gradients: Summation
        self.replace(program, [code])

    def with_schedule(self, schedule: Schedule) -> ReplicasOnCards:
        """The same program on the same state, with another schedule."""
        other = ReplicasOnCards(self.program, schedule, self.devices, self._setup, self._code)
        other.state = self.state
        return other

    def attach(self, plan: OptimizerPlan | None) -> SpreadState:
        """Allocate the state of every card; the weights are still to be loaded."""
        layout, each = self.program.layout, self._setup.replicas // len(self.devices)
        self.state = SpreadState(
            [
                DeviceState(layout, plan, card, each, self.program.trains, first_replica=number * each)
                for number, card in enumerate(self.devices)
            ]
        )
        return self.state

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run the whole schedule on inputs of the host and return the outputs there."""
        if self.state is None:
            raise detached()
        batches = micro_batches_of(inputs, self.schedule.micro_batches)
        try:
            with RECORDING.call():
                return self._run(self.state, batches)
        except BaseException:
            # Gradients of an interrupted update must not leak into the next one.
            self.state.forget_gradients()
            raise

    def _run(self, state: SpreadState, batches: MicroBatches) -> list[Tensor]:
        for share, worker, own in zip(self._shares, self._workers, state.parts, strict=True):
            streams = self._setup.streams.on_device(share.device, share.replicas)
            worker.begin(own, streams, [batches[number] for number in share.micro_batches])
        state.updates_of_call = 0
        last = len(self._shares[0].segments) - 1
        for number, segment in enumerate(self._shares[0].segments):
            if segment.updates:
                self._sum_gradients(state.parts, self._setup.exchange)
                self._update(state, number)
                state.updates_of_call += 1
                if number < last:
                    INTERRUPTS.deliver_pending()
                continue
            for worker in self._workers:
                worker.run_segment(number)
        return self._outputs(batches)

    def _update(self, state: SpreadState, segment: int) -> None:
        try:
            # All cards draw the first one's numbers for an update, so its stream advances last.
            for worker in reversed(self._workers):
                worker.run_segment(segment)
        except BaseException:
            # Other cards than the one that failed may have completed their update.
            state.begin_update()
            raise

    def _outputs(self, batches: MicroBatches) -> list[Tensor]:
        results = Results(self.schedule)
        for share, worker in zip(self._shares, self._workers, strict=True):
            parts, left = worker.finish()
            for place, part in zip(share.results, parts, strict=True):
                results.put(place, part, ())
            self._write_back(left, [batches[number] for number in share.micro_batches])
        return results.together(self._first.constants)

    def _write_back(self, written: MicroBatches, batches: MicroBatches) -> None:
        for theirs, ours in zip(written, batches, strict=True):
            for position in self.program.written_inputs:
                if theirs[position] is not ours[position]:
                    ours[position].copy_(theirs[position])

    def weights(self) -> Mapping[str, Tensor]:
        """All weights and buffers, those of the first card."""
        if self.state is None:
            raise detached()
        return {**self.state.parameters, **self.state.buffers()}

    def programs_to_compile(self, captured: Program) -> Sequence[Program]:
        """The whole program."""
        return [with_returned_loss_check(captured)]

    def inputs_to_compile(self, number: int, micro_batch: Sequence[Tensor]) -> dict[Action, Sequence[Tensor]]:
        """A micro-batch for each action that takes one."""
        return inputs_of_steps(self.schedule, micro_batch)

    def replace(self, program: Program, codes: Sequence[Code | None]) -> None:
        """Run another form of the program on all cards from now on, by compiled code if it is given."""
        (code,) = codes
        self.program, self._code = program, code
        programs = [to_device(program, self.devices[0], share.device) for share in self._shares]
        walked = [
            WalkedExecutable(own, share.schedule, self._setup.on_failure, None if code is None else code(share.device))
            for own, share in zip(programs, self._shares, strict=True)
        ]
        self._first = walked[0]
        if self.devices[0].type == "cuda":
            from pilotage.strategies.replicas.cuda import CudaCard, CudaSummation, streams_of

            streams = streams_of(self._shares)
            self._workers = [CudaCard(*each) for each in zip(self._shares, programs, walked, streams, strict=True)]
            self._sum_gradients = CudaSummation(streams)
        else:
            self._workers = [WalkedCard(*each) for each in zip(self._shares, walked, strict=True)]
            self._sum_gradients = sum_by_copies

    def detach(self) -> None:
        """Free the state of all cards."""
        self.state = None
