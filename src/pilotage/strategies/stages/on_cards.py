"""A program whose stages are on several cards of one process, with several micro-batches on their way through them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor
from torch.fx import Node

from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.state import DeviceState
from pilotage.execution.walk import Forgive, Results, StepFailure, micro_batches_of
from pilotage.interrupts import INTERRUPTS
from pilotage.options.choices import PipelineOrder
from pilotage.passes.cutting import StageProgram
from pilotage.program.program import Action
from pilotage.program.schedule import Schedule, Step
from pilotage.program.step_function import NOT_FINITE
from pilotage.strategies.stages.orders import Move, moves
from pilotage.strategies.stages.passage import Passage
from pilotage.strategies.stages.rounds import order_for
from pilotage.strategies.stages.states import StageStates
from pilotage.strategies.stages.update import StageUpdate
from pilotage.strategies.stages.work import StageWork


class StagedExecutable:
    """Tells all stages what to do, in the order of a pipeline."""

    def __init__(
        self,
        cuts: Sequence[StageProgram],
        cards: Sequence[torch.device],
        schedule: Schedule,
        forgive: Forgive,
        *,
        order: PipelineOrder | None,
        stops_at_losses: bool,
    ) -> None:
        self._cuts = cuts
        self._cards = cards
        self._schedule = schedule
        self._forgive = forgive
        self._stops_at_losses = stops_at_losses
        self._program = cuts[0].program
        self._first = next(iter(self._program.computations.values()))
        self._looks_at_losses = self._first.checks_late
        self._works = [
            StageWork(cut.program, cut.part, self._first.sections, card) for cut, card in zip(cuts, cards, strict=True)
        ]
        self._updates = [StageUpdate(cut) for cut in cuts] if self._program.trains else []
        self._passage = Passage(cards)
        self._order = self._order_for(order)

    def run(self, state: DeviceState, streams: RandomStreams, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run one whole schedule on inputs of the host, and bring the outputs of all stages back."""
        assert isinstance(state, StageStates)
        try:
            return self._run(state, streams, inputs)
        except BaseException:
            # Gradients of an update that never came must not leak into the next one.
            state.forget_gradients()
            raise

    def _run(self, state: StageStates, streams: RandomStreams, inputs: Sequence[Tensor]) -> list[Tensor]:
        everyone = [streams.on_card(card, range(len(streams.states))) for card in self._cards]
        batches = [self._batches(stage, inputs) for stage in range(len(self._cards))]
        results, finite, done = Results(self._schedule), True, 0
        state.updates_of_call = 0
        for is_update, group in groupby(self._schedule.steps, lambda step: step.action is Action.UPDATE):
            steps = list(group)
            if is_update:
                self._stop_at_losses(steps[0], done, streams, finite=finite)
                self._update(steps[0], state, everyone)
                INTERRUPTS.let_in()
            else:
                for work, own, there, here in zip(self._works, state.of_stages, everyone, batches, strict=True):
                    work.begin(own, there, steps, here)
                self._pass_through(steps, done, streams)
                finite = self._put(results, steps) and finite
            done += len(steps)
        outputs = [output.to("cpu") for output in results.together(self._program.constant_outputs)]
        if not finite and self._looks_at_losses:
            self._looks_at_losses = False
            failure = StepFailure(self._schedule.steps[-1], done, self._first, [], streams, is_late=True)
            self._forgive(failure, RuntimeError(NOT_FINITE))
        return outputs

    def _order_for(self, asked: PipelineOrder | None) -> PipelineOrder:
        steps = next(list(group) for _, group in groupby(self._schedule.steps, lambda step: step.action))
        order = order_for(asked, len(steps), len(self._cuts), trains=self._program.trains)
        backwards = [cut.part.backward for cut in self._cuts if cut.part.backward is not None]
        # What backward draws comes before the next micro-batch's forward on one card.
        draws = any(_draws(node) for backward in backwards for node in backward.graph.graph.nodes)
        return PipelineOrder.SHARDED if draws else order

    def _batches(self, stage: int, inputs: Sequence[Tensor]) -> list[Sequence[Tensor]]:
        """The micro-batches where a stage needs them."""
        needed, card = self._cuts[stage].part.inputs, self._cards[stage]
        there = [
            tensor.to(card, non_blocking=True) if stage == 0 or position in needed else tensor
            for position, tensor in enumerate(inputs)
        ]
        return micro_batches_of(there, self._schedule.micro_batches)

    def _pass_through(self, steps: Sequence[Step], done: int, streams: RandomStreams) -> None:
        carriers: dict[Move, Tensor] = {}
        last = len(self._works) - 1
        try:
            for move in moves(self._order, len(steps), last + 1, trains=self._program.trains):
                before = Move(move.stage + 1 if move.back else move.stage - 1, move.number, move.back)
                is_begun = 0 <= before.stage <= last
                carrier = carriers.pop(before) if is_begun else torch.empty(1, device=self._cards[move.stage])
                work = self._works[move.stage]
                with self._passage.at(move.stage):
                    brought = self._passage.bring(carrier, move.stage)
                    carriers[move] = (work.backward if move.back else work.forward)(move.number, brought)
        except (RuntimeError, MemoryError) as error:
            failure = self._works[move.stage].failure
            if failure is None:
                raise
            step = steps[failure.number]
            raise StepFailure(step, done + failure.number, failure.computation, [], streams) from error

    def _put(self, results: Results, steps: Sequence[Step]) -> bool:
        """Take the outputs of a round; tells whether all losses were finite."""
        finite, first = True, self._cuts[0]
        for number, step in enumerate(steps):
            found = {position: output for work in self._works for position, output in work.outputs[number].items()}
            if self._looks_at_losses and first.flag in found:
                finite = bool(found[first.flag]) and finite
            if step.result is not None:
                results.put(step.result, [found[number] for number in first.outputs], self._program.constant_outputs)
        return finite

    def _stop_at_losses(self, step: Step, number: int, streams: RandomStreams, *, finite: bool) -> None:
        if self._stops_at_losses and self._looks_at_losses and not finite:
            raise StepFailure(step, number, self._first, [], streams, is_late=True) from RuntimeError(NOT_FINITE)

    def _update(self, step: Step, state: StageStates, streams: Sequence[RandomStreams]) -> None:
        states = state.of_stages
        for own in states:
            own.exchange_gradients()
        if self._updates[0].bounds_norm(state):
            norms = [update.norm(own) for update, own in zip(self._updates, states, strict=True)]
            for update, own in zip(self._updates, states, strict=True):
                update.clip(own, norms)
        state.begin_update()
        for number, (update, own, there) in enumerate(zip(self._updates, states, streams, strict=True)):
            with self._passage.at(number):
                update.run(own, there, step.replica)
        state.end_update()
        state.updates_of_call += 1


def _draws(node: Node) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
