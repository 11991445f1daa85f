"""Which strategy a program gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from pilotage.devices.registry import Choice
from pilotage.distributed.pipeline_group import PipelineGroup
from pilotage.errors import CaptureError
from pilotage.events import Event, Noted, Warned
from pilotage.options.choices import OutputMode
from pilotage.options.execution import Execution
from pilotage.passes.returned_loss_check import with_returned_loss_check
from pilotage.passes.stage_placement import place
from pilotage.passes.stage_program import cut_program
from pilotage.passes.stages_on_cards import cut_for_cards, stages_of
from pilotage.program.program import Action, Program
from pilotage.program.schedule import Schedule, make_schedule
from pilotage.strategies.device_assignment import Cards, is_pipeline, refuse_on_cards
from pilotage.strategies.replicas.strategy import ReplicasOnCards
from pilotage.strategies.single import SingleDevice
from pilotage.strategies.stages.in_processes import ProcessTransport
from pilotage.strategies.stages.on_cards import CardTransport, order_on_cards
from pilotage.strategies.stages.orders import order_for
from pilotage.strategies.stages.strategy import Pipeline, micro_batches_per_round
from pilotage.strategies.strategy import Setup, Strategy
from pilotage.strategies.tensor_locations import possible_locations, refuse_slots_on_host

_SHARED_PARAMETERS = (
    "Several stages use {names}. The first of these stages owns each of them and sends it to the others with every "
    "micro-batch. If possible, put the modules that share weights in one stage."
)
_ONE_AFTER_THE_OTHER = (
    "The stages of the program are placed on several cards and run one after the other. This has been tested only on "
    "emulated cards: compare the first results with a run on one card (CUDA_VISIBLE_DEVICES=0)."
)
_ON_HOST = "some of its state or activations are on the host, and compiled code expects them on the device"
_UNTRIED = (
    "This has been tested only with one card that is listed several times: compare the first results with a run on one "
    "card (CUDA_VISIBLE_DEVICES=0)."
)


@dataclass(frozen=True, kw_only=True)
class StrategyChoice:
    """What the choice of a strategy depends on, besides the program."""

    execution: Execution
    choice: Choice
    cards: Cards
    pipeline_group: PipelineGroup | None
    """The processes that have the other stages; None if this process has all of them."""

    setup: Setup
    tell: Callable[[Event], None]

    def strategy(self, program: Program, with_gradients_apart: Callable[[], Program] | None) -> Strategy:
        """The strategy for a program.

        A pipeline over cards needs the program captured ``with_gradients_apart``; one from a file cannot be captured.
        """
        if self.pipeline_group is not None:
            return self._stage_of(self.pipeline_group, program)
        if with_gradients_apart is not None and is_pipeline(self.execution, self.choice, self.cards, program):
            pipeline = self._pipeline_on_cards(program, with_gradients_apart())
            if pipeline is not None:
                return pipeline
        placed = place(program, self.cards.usable)
        if placed.state_devices:
            refuse_slots_on_host(program)
            self.tell(Warned(message=_ONE_AFTER_THE_OTHER))
        elif self.cards.of_replicas:
            return self._replicas_on(self.cards.of_replicas, program)
        locations = possible_locations(self.execution.locations, self.choice, trains=program.trains)
        return SingleDevice(
            program,
            self._schedule(program),
            self.choice.backend,
            self.setup,
            placed,
            needs_graph=_ON_HOST if locations.uses_host else "",
        )

    def _stage_of(self, group: PipelineGroup, program: Program) -> Pipeline:
        """One stage of the program; other processes load the others."""
        device = self.choice.capabilities.device
        cut = cut_program(with_returned_loss_check(program), group.stage, group.stages, device)
        if cut.shared_parameters:
            self.tell(Noted(message=_SHARED_PARAMETERS.format(names=", ".join(cut.shared_parameters))))
        schedule = self._schedule(program)
        together = micro_batches_per_round(schedule)
        order = order_for(self.setup.order, together, group.stages, trains=program.trains)
        transport = ProcessTransport(group, cut, program.layout, device, order, together)
        return Pipeline(cut.program, schedule, [cut], [device], transport, self.setup)

    def _pipeline_on_cards(self, program: Program, apart: Program) -> Pipeline | None:
        """All stages of the program, each on its card; None if they have to run one after the other."""
        usable = self.cards.usable
        cards = [usable[stage % len(usable)] for stage in range(stages_of(apart))]
        try:
            cuts = cut_for_cards(apart, cards)
        except CaptureError as error:
            self.tell(Noted(message=f"The stages run one after the other, on several cards: {error}"))
            return None
        self._warn_of_untried(cards, "The stages are a pipeline over several cards of this process.")
        schedule = self._schedule(apart)
        together = micro_batches_per_round(schedule)
        order = order_on_cards(self.setup.order, cuts, together)
        transport = CardTransport(cards, order, together, trains=program.trains)
        # Its steps are those of the cut program; its outputs do not include the gradients.
        whole = replace(program, computations=with_returned_loss_check(apart).computations, checks_loss=False)
        return Pipeline(whole, schedule, cuts, cards, transport, self.setup)

    def _replicas_on(self, cards: Sequence[torch.device], program: Program) -> ReplicasOnCards:
        """Replicas side by side on several cards."""
        refuse_on_cards(program, self.execution)
        self._warn_of_untried(cards, "Replicas run side by side on several cards of this process.")
        return ReplicasOnCards(program, self._schedule(program), cards, self.setup)

    def _warn_of_untried(self, cards: Sequence[torch.device], what: str) -> None:
        if len(set(cards)) > 1:
            self.tell(Warned(message=f"{what} {_UNTRIED}"))

    def _schedule(self, program: Program) -> Schedule:
        default = OutputMode.FINAL if program.trains else OutputMode.ALL
        return make_schedule(
            self.execution.batching,
            trains=program.trains,
            mode=self.execution.outputs or default,
            period=self.execution.output_period,
            pools=Action.UPDATE in program.computations,
        )
