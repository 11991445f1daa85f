"""From a module and a first call to a program that is ready to be attached."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from pilotage.capture.capture import Request, capture, uncaptured
from pilotage.capture.dropout import active_dropout
from pilotage.compiler.transport import PackedCode
from pilotage.devices.base import Backend, Executable
from pilotage.devices.registry import Choice, choose
from pilotage.distributed.pipeline_group import Line
from pilotage.errors import CaptureError, OptionError
from pilotage.events import BackendChosen, CompilationProgress, Event, Noted, Warned
from pilotage.execution.random_streams import RandomStreams, seeds_for
from pilotage.execution.state import Exchange
from pilotage.execution.synthetic_inputs import SyntheticInputs
from pilotage.execution.walk import Calls, Forgive
from pilotage.optim.rule import OptimizerPlan
from pilotage.options.choices import NonFiniteLoss, OutputMode, Tier
from pilotage.options.execution import Execution
from pilotage.options.locations import Locations
from pilotage.passes.anchors import anchored
from pilotage.passes.cutting import cut_program
from pilotage.passes.late_checks import with_late_checks
from pilotage.passes.offloading import offloaded
from pilotage.passes.placement import place
from pilotage.passes.recomputation import recomputed
from pilotage.passes.stages_on_cards import cut_for_cards, stages_of
from pilotage.program.layout import Groups
from pilotage.program.optimizer_shards import Broadcast, Shares
from pilotage.program.program import Action, Program
from pilotage.program.schedule import Schedule, make_schedule
from pilotage.program.specification import TensorSpec
from pilotage.program.structure import Parsers, Structure
from pilotage.runtime.ascending import begin_ascent
from pilotage.runtime.session import Session
from pilotage.strategies.cards.loading import load_on_cards
from pilotage.strategies.cards.state import CardStates
from pilotage.strategies.device_assignment import Cards, choose_cards, is_pipeline, refuse_on_cards
from pilotage.strategies.stages.in_processes import PipelinedExecutable
from pilotage.strategies.stages.on_cards import StagedExecutable
from pilotage.strategies.stages.states import StageStates
from pilotage.strategies.tensor_locations import (
    notice_of_locations,
    possible_locations,
    refuse_slots_on_host,
    shares_of,
)
from pilotage.turns import PROCESS_WIDE

_TRAVELLING = (
    "Several stages use {names}. Each lives in the first of these stages, and goes to the others with every micro-batch: put what "
    "shares weights in one stage where you can."
)
_SHARED_OUT = (
    "The stages of the program are shared out to several cards, and run one after the other. This has been tested on "
    "emulated cards alone: compare the first results with a run on one card (CUDA_VISIBLE_DEVICES=0)."
)
_UNTRIED = (
    "This has been run with one card in the place of all of them: compare the first results with a run on one card "
    "(CUDA_VISIBLE_DEVICES=0)."
)


@dataclass(frozen=True, kw_only=True)
class Compilation:
    """What is compiled, and who is told about it."""

    module: nn.Module
    modes: Mapping[nn.Module, bool]
    plan: OptimizerPlan | None
    execution: Execution
    groups: Mapping[str, Groups]
    parsers: Parsers
    tell: Callable[[Event], None]
    forgive: Forgive
    sample: Callable[[], Sequence[Tensor]]
    """Gives the inputs of one micro-batch."""

    exchange: Exchange | None = None
    """Adds up the gradients of all instances."""

    broadcast: Broadcast | None = None
    """Overwrites tensors by those of one instance."""

    gather: Callable[[Any], list[Any]] | None = None
    """Brings together what each instance has."""

    line: Line | None = None
    """The processes that have the other stages; None where this one has all of them."""

    code: PackedCode | None = None
    """Compiled code that came with the program, if it is trusted."""

    def session(self, arguments: Structure, micro_batch: Sequence[TensorSpec]) -> Session:
        """Capture and load the program; its state is still to be put on the device."""
        self.tell(CompilationProgress(fraction=0.0, doing="choosing a device"))
        choice, cards = self._choice()
        self.tell(CompilationProgress(fraction=0.05, doing="capturing"))
        program = self._program(choice, arguments, micro_batch, apart=self.line is not None)
        if self.line is None and is_pipeline(self.execution, choice, cards, program):
            apart = self._program(choice, arguments, micro_batch, apart=True)
            if (session := self._load_stages(choice, cards, program, apart)) is not None:
                return session
        return self._load(choice, cards, program)

    def session_of(self, program: Program) -> Session:
        """Load a program that was captured before."""
        if self.line is not None:
            raise OptionError(
                "A program that was compiled before cannot be cut into stages. Compile it here, or start one process."
            )
        self.tell(CompilationProgress(fraction=0.0, doing="choosing a device"))
        return self._load(*self._choice(), program)

    def _load(self, choice: Choice, cards: Cards, program: Program) -> Session:
        self.tell(CompilationProgress(fraction=0.8, doing="loading"))
        schedule = self._schedule(program)
        if self.line is not None:
            return self._load_stage(self.line, choice, program, schedule)
        placed = place(program, cards.usable)
        if placed.homes:
            refuse_slots_on_host(program)
            self.tell(Warned(message=_SHARED_OUT))
        elif cards.of_replicas:
            return self._load_replicas(choice, cards.of_replicas, program, schedule)
        session = self._session(
            choice,
            schedule,
            captured=program,
            program=program,
            executable=choice.backend.load(placed.program, schedule, self.forgive),
            tier=Tier.GRAPH if choice.tier is Tier.COMPILED else choice.tier,
            homes=placed.homes,
            pools=Action.UPDATE in program.computations,
            shares=self._shares(),
            gather=self.gather,
        )
        # The compiler knows one device alone.
        if not placed.homes and not self._locations(choice).uses_host:
            begin_ascent(session, self.execution, self.module, code=self.code, sample=self.sample, tell=self.tell)
        return session

    def _session(self, choice: Choice, schedule: Schedule, **own: Any) -> Session:
        """A session with what all of them have in common."""
        batching, line = self.execution.batching, self.line
        seeds = seeds_for(
            self.execution.random_seed,
            batching.replicas,
            instance=self.execution.instance,
            instances=batching.instances,
            stage=0 if line is None else line.stage,
            stages=1 if line is None else line.stages,
        )
        return Session(
            choice=choice,
            schedule=schedule,
            reload=partial(_reload, choice.backend, schedule, self.forgive),
            streams=RandomStreams(choice.capabilities.device, seeds),
            replicas=batching.replicas,
            exchange=self._exchange,
            accumulation=self.execution.accumulation,
            synthetic=SyntheticInputs() if self.execution.synthetic_inputs else None,
            **own,
        )

    @property
    def _exchange(self) -> Exchange | None:
        return None if self.plan is None else self.exchange

    def _load_replicas(
        self, choice: Choice, cards: Sequence[torch.device], program: Program, schedule: Schedule
    ) -> Session:
        """Load the program on several cards, each of which has some of the replicas."""
        refuse_on_cards(program, self.execution)
        self._tell_of_untried(cards, "Replicas run side by side on several cards of this process.")
        replicas, exchange, pools = self.execution.batching.replicas, self._exchange, program.trains
        return self._session(
            choice,
            schedule,
            captured=program,
            program=program,
            executable=load_on_cards(program, schedule, self.forgive, replicas, cards),
            room=lambda plan: CardStates(program.layout, plan, cards, replicas, pools, exchange),
            cards=cards,
            tier=choice.tier,
            pools=pools,
        )

    def _load_stages(self, choice: Choice, cards: Cards, program: Program, apart: Program) -> Session | None:
        """Load all stages of the program, each on its card; None where they have to run one after the other."""
        places = [cards.usable[stage % len(cards.usable)] for stage in range(stages_of(apart))]
        try:
            cuts = cut_for_cards(apart, places)
        except CaptureError as error:
            self.tell(Noted(message=f"The stages run one after the other, on several cards: {error}"))
            return None
        self.tell(CompilationProgress(fraction=0.8, doing="loading"))
        self._tell_of_untried(places, "The stages are a pipeline over several cards of this process.")
        schedule, replicas, exchange = self._schedule(apart), self.execution.batching.replicas, self._exchange
        layouts = [cut.program.layout for cut in cuts]
        return self._session(
            choice,
            schedule,
            captured=program,
            program=program,
            executable=self._pipeline(StagedExecutable, cuts, places, schedule),
            room=lambda plan: StageStates(layouts, plan, places, replicas, exchange),
            cards=tuple(places),
            tier=choice.tier,
            pools=program.trains,
        )

    def _tell_of_untried(self, cards: Sequence[torch.device], what: str) -> None:
        if len(set(cards)) > 1:
            self.tell(Warned(message=f"{what} {_UNTRIED}"))

    def _load_stage(self, line: Line, choice: Choice, program: Program, schedule: Schedule) -> Session:
        """Load one stage of the program; other processes load the others."""
        cut = cut_program(with_late_checks(program), line.stage, line.stages, choice.capabilities.device)
        if cut.travelling:
            self.tell(Noted(message=_TRAVELLING.format(names=", ".join(cut.travelling))))
        return self._session(
            choice,
            schedule,
            captured=program,
            program=cut.program,
            executable=self._pipeline(PipelinedExecutable, cut, schedule, line),
            tier=choice.tier,
            line=line,
            cut=cut,
            pools=program.trains,
        )

    def _pipeline(self, kind: Callable[..., Executable], *parts: object) -> Executable:
        """Stages that work in the order, and with the care for losses, that was asked for."""
        stops_at_losses = self.execution.nonfinite_loss is NonFiniteLoss.RAISE
        return kind(*parts, forgive=self.forgive, order=self.execution.pipeline, stops_at_losses=stops_at_losses)

    def _refuse_for_stages(self, choice: Choice) -> None:
        """Say what stages in processes of their own cannot do."""
        if choice.tier is not Tier.GRAPH:
            raise OptionError(
                f"The tier is {choice.tier.value!r}. Stages in processes of their own run in the tier 'graph' alone."
            )
        if self._shares() is not None or self._locations(choice).activations is not None:
            raise OptionError(
                "Stages in processes of their own can neither share out the optimizer's state to instances nor let activations "
                "wait on the host yet. Leave these locations as they are."
            )

    def _locations(self, choice: Choice) -> Locations:
        return possible_locations(self.execution.locations, choice, trains=self.plan is not None)

    def _shares(self) -> Shares | None:
        return shares_of(self.module, self.plan, self.execution, self.broadcast)

    def _choice(self) -> tuple[Choice, Cards]:
        choice = choose(self.execution.backend, self.execution.tier)
        if self.execution.nonfinite_loss is NonFiniteLoss.RAISE and not choice.capabilities.stops_at_losses:
            raise OptionError(
                f"nonfinite_loss is 'raise', but the {choice.capabilities.name} backend does not look at losses yet. "
                "Use 'ignore', or the cpu backend."
            )
        if (notice := notice_of_locations(self.execution.locations, choice, trains=self.plan is not None)) is not None:
            self.tell(notice)
        if self.line is not None:
            self._refuse_for_stages(choice)
        cards = choose_cards(
            self.execution, choice, trains=self.plan is not None, in_line=self.line is not None, tell=self.tell
        )
        self.tell(
            BackendChosen(
                backend=choice.capabilities.name,
                device=cards.label(choice),
                tier=choice.tier.value,
                reason=choice.reason,
                program=self.execution.name,
            )
        )
        return choice, cards

    def _program(
        self, choice: Choice, arguments: Structure, micro_batch: Sequence[TensorSpec], *, apart: bool
    ) -> Program:
        """Capture the program; with its gradients apart, if it is going to be cut into stages."""
        request = Request(
            module=self.module,
            arguments=arguments,
            inputs=micro_batch,
            modes=self.modes,
            plan=self.plan,
            batching=self.execution.batching,
            reduction=self.execution.gradient_reduction,
            pooling=self.execution.pooling,
            groups=self.groups,
            loss_rule=self.execution.loss_rule,
            broadcast_buffers=self.execution.broadcast_buffers,
            slots_on_host=self._locations(choice).optimizer,
            shares=self._shares(),
            separate_gradients=apart,
            check_loss=choice.capabilities.stops_at_losses
            and self.execution.nonfinite_loss is not NonFiniteLoss.IGNORE,
            device=choice.capabilities.device,
            parsers=self.parsers,
        )
        # Torch traces one thing at a time in a process, and a module that is traced has other tensors in its tables.
        with PROCESS_WIDE:
            program = uncaptured(request) if choice.tier is Tier.EAGER else capture(request)
        program = recomputed(program, self.execution.recomputation)
        if (waiting := self._locations(choice).activations) is not None:
            program = offloaded(program, waiting)
        program = anchored(program, self.execution.anchors)
        for warning in program.warnings:
            self.tell(Warned(message=warning))
        if (dropping := active_dropout(self.module, self.modes, program)) is not None:
            self.tell(Warned(message=dropping))
        return program

    def _schedule(self, program: Program) -> Schedule:
        default = OutputMode.FINAL if program.trains else OutputMode.ALL
        return make_schedule(
            self.execution.batching,
            trains=program.trains,
            mode=self.execution.output_mode or default,
            period=self.execution.output_period,
            pools=Action.UPDATE in program.computations,
        )


def _reload(
    backend: Backend, schedule: Schedule, forgive: Forgive, program: Program, calls: Calls | None
) -> Executable:
    return backend.load(program, schedule, forgive, calls)
