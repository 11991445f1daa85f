"""From a module and a first call to a program that is ready to be attached."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from pilotage.backends.base import Backend, Executable
from pilotage.backends.native.cache import Entry
from pilotage.backends.native.transport import PackedCode
from pilotage.backends.registry import Choice, choose
from pilotage.backends.state import Exchange
from pilotage.backends.streams import RandomStreams, seeds_for
from pilotage.backends.threads import ThreadTuner
from pilotage.backends.walk import Calls, Forgive
from pilotage.errors import OptionError
from pilotage.events import BackendChosen, CompilationProgress, Event, TierChanged, Warned
from pilotage.optim.rule import OptimizerPlan
from pilotage.options.choices import NonFiniteLoss, OutputMode, Tier
from pilotage.options.execution import Execution
from pilotage.program.anchors import anchored
from pilotage.program.capture import Request, capture, uncaptured
from pilotage.program.layout import Groups
from pilotage.program.placement import place
from pilotage.program.program import Program
from pilotage.program.recomputation import recomputed
from pilotage.program.schedule import Schedule, make_schedule
from pilotage.program.specification import TensorSpec
from pilotage.program.structure import Parsers, Structure
from pilotage.runtime.ascent import Ascent, ascent_for
from pilotage.runtime.session import Session
from pilotage.runtime.synthetic import SyntheticInputs

_SHARED_OUT = (
    "The stages of the program are shared out to several cards, and run one after the other. This has been tested on "
    "emulated cards alone: compare the first results with a run on one card (CUDA_VISIBLE_DEVICES=0)."
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

    code: PackedCode | None = None
    """Compiled code that came with the program, if it is trusted."""

    def session(self, arguments: Structure, micro_batch: Sequence[TensorSpec]) -> Session:
        """Capture and load the program; its state is still to be put on the device."""
        self.tell(CompilationProgress(fraction=0.0, doing="choosing a device"))
        choice = self._choice()
        self.tell(CompilationProgress(fraction=0.05, doing="capturing"))
        return self._load(choice, self._program(choice, arguments, micro_batch))

    def session_of(self, program: Program) -> Session:
        """Load a program that was captured before."""
        self.tell(CompilationProgress(fraction=0.0, doing="choosing a device"))
        return self._load(self._choice(), program)

    def _load(self, choice: Choice, program: Program) -> Session:
        self.tell(CompilationProgress(fraction=0.8, doing="loading"))
        schedule = self._schedule(program)
        batching = self.execution.batching
        seeds = seeds_for(
            self.execution.random_seed,
            batching.replicas,
            instance=self.execution.instance,
            instances=batching.instances,
        )
        placed = place(program, choice.backend.devices)
        if placed.homes:
            self.tell(Warned(message=_SHARED_OUT))
        session = Session(
            choice=choice,
            captured=program,
            program=program,
            schedule=schedule,
            executable=choice.backend.load(placed.program, schedule, self.forgive),
            reload=partial(_reload, choice.backend, schedule, self.forgive),
            tier=Tier.GRAPH if choice.tier is Tier.COMPILED else choice.tier,
            homes=placed.homes,
            streams=RandomStreams(choice.backend.device, seeds),
            replicas=batching.replicas,
            pools=batching.micro_batches_per_update > 1,
            exchange=self.exchange if program.trains else None,
            accumulation=self.execution.accumulation,
            synthetic=SyntheticInputs() if self.execution.synthetic_inputs else None,
        )
        if not placed.homes:
            self._begin_ascent(session)
        return session

    def _begin_ascent(self, session: Session) -> None:
        """Take compiled code that is there, or prepare to compile; where the tier is pinned to it, compile at once."""
        choice, must_compile = session.choice, session.choice.tier is Tier.COMPILED
        # Instances change over at different moments, and would part in the last bits of their weights.
        rises = choice.rises and session.exchange is None
        if not rises and not must_compile:
            return
        if self.execution.nonfinite_loss is NonFiniteLoss.RAISE and session.program.checks_loss:
            if must_compile:
                raise OptionError(
                    "nonfinite_loss is 'raise', and compiled code cannot stop in a step. Use the tier 'graph'."
                )
            return
        ascent = ascent_for(
            session.captured,
            session.schedule,
            choice.backend.device,
            # Who names a directory for compiled code wants it filled.
            patience=choice.backend.patience if self.execution.cache_directory is None else 0.0,
            directory=self.execution.cache_directory,
            must_compile=must_compile,
            tell=self.tell,
        )
        if ascent is None:
            return
        session.ascent = ascent
        if choice.backend.computes_in_threads and rises:
            session.threads = ThreadTuner(
                torch.get_num_threads(), ascent.cache.folder(ascent.fingerprint).with_suffix(".threads")
            )
        if self.code is not None:
            ascent.take_in(self.code)
        entry = ascent.find()
        if must_compile and (entry is None or entry.tuning.tier is not Tier.COMPILED):
            entry = self._compile_now(ascent, session)
        if entry is not None:
            session.go_up(entry)
            self.tell(TierChanged(tier=session.tier.value, updates=0, reason=f"compiled before ({entry.tuning.gain})"))

    def _compile_now(self, ascent: Ascent, session: Session) -> Entry:
        self.tell(CompilationProgress(fraction=0.85, doing="compiling"))
        buffers = [buffer.detach() for _, buffer in self.module.named_buffers()]
        ascent.cache.forget(ascent.fingerprint)
        ascent.start(self.sample(), buffers)
        entry = ascent.finish()
        if entry is None or entry.tuning.tier is not Tier.COMPILED:
            reason = "see the warning above" if entry is None else entry.tuning.reason
            raise OptionError(f"The tier is 'compiled', but the program could not be compiled: {reason}. Use 'graph'.")
        return entry

    def _choice(self) -> Choice:
        choice = choose(self.execution.backend, self.execution.tier)
        if self.execution.nonfinite_loss is NonFiniteLoss.RAISE and not choice.backend.stops_at_losses:
            raise OptionError(
                f"nonfinite_loss is 'raise', but the {choice.backend.name} backend does not look at losses yet. "
                "Use 'ignore', or the cpu backend."
            )
        device, tier = str(choice.backend.device), choice.tier.value
        self.tell(
            BackendChosen(
                backend=choice.backend.name,
                device=device,
                tier=tier,
                reason=choice.reason,
                program=self.execution.name,
            )
        )
        return choice

    def _program(self, choice: Choice, arguments: Structure, micro_batch: Sequence[TensorSpec]) -> Program:
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
            broadcast_buffers=self.execution.broadcast_buffers,
            check_loss=choice.backend.stops_at_losses and self.execution.nonfinite_loss is not NonFiniteLoss.IGNORE,
            device=choice.backend.device,
            parsers=self.parsers,
        )
        program = uncaptured(request) if choice.tier is Tier.EAGER else capture(request)
        program = anchored(recomputed(program, self.execution.recomputation), self.execution.anchors)
        for warning in program.warnings:
            self.tell(Warned(message=warning))
        return program

    def _schedule(self, program: Program) -> Schedule:
        default = OutputMode.FINAL if program.trains else OutputMode.ALL
        return make_schedule(
            self.execution.batching,
            trains=program.trains,
            mode=self.execution.output_mode or default,
            period=self.execution.output_period,
        )


def _reload(
    backend: Backend, schedule: Schedule, forgive: Forgive, program: Program, calls: Calls | None
) -> Executable:
    return backend.load(program, schedule, forgive, calls)
