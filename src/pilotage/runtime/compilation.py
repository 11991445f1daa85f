"""From a module and a first call to a session: devices, capture, passes, strategy, compiled code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from pilotage.capture.capture import Request, capture, uncaptured
from pilotage.capture.dropout import active_dropout
from pilotage.compiler.operator_libraries import refuse_while_loading
from pilotage.compiler.packed_code import PackedCode
from pilotage.devices.registry import Choice, choose
from pilotage.distributed.peers import Peers
from pilotage.distributed.pipeline_group import PipelineGroup
from pilotage.errors import OptionError
from pilotage.events import BackendChosen, CompilationProgress, Event, TierChanged, Warned
from pilotage.execution.random_streams import RandomStreams, seeds_for
from pilotage.execution.state import CardExchange
from pilotage.execution.synthetic_inputs import SyntheticInputs
from pilotage.execution.threads import ThreadTuner
from pilotage.execution.walk import OnFailure
from pilotage.optim.rule import OptimizerPlan
from pilotage.options.choices import NonFiniteLoss, Tier
from pilotage.options.execution import Execution
from pilotage.options.locations import Locations
from pilotage.passes.anchors import anchored
from pilotage.passes.offloading import offloaded
from pilotage.passes.recomputation import recomputed
from pilotage.program.layout import ReplicaGroups
from pilotage.program.optimizer_shards import OptimizerShards
from pilotage.program.program import Program
from pilotage.program.specification import TensorSpec
from pilotage.program.structure import Parsers, Structure
from pilotage.runtime.instances.common_switch import CommonSwitch
from pilotage.runtime.session import Session
from pilotage.runtime.tiers.policy import CompilePolicy, compile_policy
from pilotage.runtime.tiers.stages import Compiled, ascents_for
from pilotage.strategies.choosing import StrategyChoice
from pilotage.strategies.device_assignment import Cards, choose_cards
from pilotage.strategies.strategy import Setup
from pilotage.strategies.tensor_locations import notice_of_locations, optimizer_shards_of, possible_locations
from pilotage.turns import PROCESS_WIDE


@dataclass(frozen=True, kw_only=True)
class Compilation:
    """Compiles a module for its first call."""

    module: nn.Module
    modes: Mapping[nn.Module, bool]
    plan: OptimizerPlan | None
    execution: Execution
    replica_groups: Mapping[str, ReplicaGroups]
    parsers: Parsers
    tell: Callable[[Event], None]
    on_failure: OnFailure
    sample: Callable[[], Sequence[Tensor]]
    """Returns the inputs of one micro-batch."""

    peers: Peers | None = None
    """The other instances; None if updates are not shared."""

    pipeline_group: PipelineGroup | None = None
    """The processes that have the other stages; None if this process has all of them."""

    code: PackedCode | None = None
    """Compiled code that came with the program, if it is trusted."""

    def session(self, arguments: Structure, micro_batch: Sequence[TensorSpec]) -> Session:
        """Capture and load the program; its state is still to be allocated."""
        choice, cards = self._choose_devices()
        self.tell(CompilationProgress(fraction=0.05, doing="capturing"))
        captured = partial(self._captured, choice, arguments, micro_batch)
        program = captured(gradients_apart=self.pipeline_group is not None)
        return self._loaded(choice, cards, program, partial(captured, gradients_apart=True))

    def captured_again(self, choice: Choice, arguments: Structure, micro_batch: Sequence[TensorSpec]) -> Program:
        """Capture the program again, for inspection."""
        return self._captured(choice, arguments, micro_batch, gradients_apart=self.pipeline_group is not None)

    def session_of(self, program: Program) -> Session:
        """Load a captured program."""
        if self.pipeline_group is not None:
            raise OptionError(
                "A program that was compiled before cannot be cut into stages. Compile it here, or start one process."
            )
        return self._loaded(*self._choose_devices(), program, None)

    def _choose_devices(self) -> tuple[Choice, Cards]:
        refuse_while_loading()
        self.tell(CompilationProgress(fraction=0.0, doing="choosing a device"))
        choice, trains = choose(self.execution.backend, self.execution.tier), self.plan is not None
        if self.execution.nonfinite_loss is NonFiniteLoss.RAISE and not choice.capabilities.stops_at_losses:
            raise OptionError(
                f"nonfinite_loss is 'raise', but the {choice.capabilities.name} backend does not check losses yet. "
                "Use 'ignore', or the cpu backend."
            )
        if (notice := notice_of_locations(self.execution.locations, choice, trains=trains)) is not None:
            self.tell(notice)
        if self.pipeline_group is not None:
            self._refuse_for_stages(choice)
        cards = choose_cards(
            self.execution, choice, trains=trains, in_pipeline_group=self.pipeline_group is not None, tell=self.tell
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

    def _refuse_for_stages(self, choice: Choice) -> None:
        """Raise for options that stages in several processes do not support."""
        if choice.tier is Tier.EAGER:
            raise OptionError(
                "The tier is 'eager'. Stages in separate processes run in the tiers 'graph' and 'compiled'."
            )
        if self._optimizer_shards() is not None or self._locations(choice).activations is not None:
            raise OptionError(
                "Stages in separate processes can neither shard the optimizer state over instances nor offload "
                "activations to the host yet. Do not set these locations."
            )

    def _captured(
        self, choice: Choice, arguments: Structure, micro_batch: Sequence[TensorSpec], *, gradients_apart: bool
    ) -> Program:
        """Capture the program and run the passes over it; a pipeline needs its gradients apart from the update."""
        locations = self._locations(choice)
        request = Request(
            module=self.module,
            arguments=arguments,
            inputs=micro_batch,
            modes=self.modes,
            plan=self.plan,
            batching=self.execution.batching,
            reduction=self.execution.reduction,
            pooling=self.execution.pooling,
            replica_groups=self.replica_groups,
            loss_rule=self.execution.loss_rule,
            broadcast_buffers=self.execution.broadcast_buffers,
            attributes_once=self.execution.attributes_once,
            slots_on_host=locations.optimizer,
            optimizer_shards=self._optimizer_shards(),
            separate_gradients=gradients_apart,
            check_loss=choice.capabilities.stops_at_losses
            and self.execution.nonfinite_loss is not NonFiniteLoss.IGNORE,
            device=choice.capabilities.device,
            parsers=self.parsers,
        )
        # Torch can trace only one module at a time in a process, and replaces its tensors meanwhile.
        with PROCESS_WIDE:
            program = uncaptured(request) if choice.tier is Tier.EAGER else capture(request)
        program = recomputed(program, self.execution.recomputation)
        if locations.activations is not None:
            program = offloaded(program, locations.activations)
        program = anchored(program, self.execution.anchors)
        for warning in program.warnings:
            self.tell(Warned(message=warning))
        if (dropping := active_dropout(self.module, self.modes, program)) is not None:
            self.tell(Warned(message=dropping))
        return program

    def _loaded(
        self, choice: Choice, cards: Cards, program: Program, with_gradients_apart: Callable[[], Program] | None
    ) -> Session:
        """Choose a strategy, and use compiled code if available."""
        self.tell(CompilationProgress(fraction=0.8, doing="loading"))
        setup = self._setup(choice)
        strategy = StrategyChoice(
            execution=self.execution,
            choice=choice,
            cards=cards,
            pipeline_group=self.pipeline_group,
            setup=setup,
            tell=self.tell,
        ).strategy(program, with_gradients_apart)
        peers = None if setup.optimizer_shards is None else self.peers
        session = Session(
            choice=choice,
            captured=program,
            strategy=strategy,
            streams=setup.streams,
            gather=self.pipeline_group.gather
            if self.pipeline_group is not None
            else (None if peers is None else peers.gather),
            accumulation=self.execution.accumulation,
            synthetic=SyntheticInputs() if self.execution.synthetic_inputs else None,
            common_switch=self._common_switch(),
        )
        self._begin_ascent(session)
        return session

    def _setup(self, choice: Choice) -> Setup:
        batching, group = self.execution.batching, self.pipeline_group
        peers = None if self.plan is None else self.peers
        seeds = seeds_for(
            self.execution.seed,
            batching.replicas,
            instance=self.execution.instance,
            instances=batching.instances,
            stage=0 if group is None else group.stage,
            stages=1 if group is None else group.stages,
        )
        return Setup(
            replicas=batching.replicas,
            streams=RandomStreams(choice.capabilities.device, seeds),
            on_failure=self.on_failure,
            exchange=None if peers is None else peers.begin_sum,
            card_exchange=None if peers is None else CardExchange(peers.sums_on_card, peers.wait_for_card),
            optimizer_shards=self._optimizer_shards(),
            order=self.execution.pipeline,
            stops_at_losses=self.execution.nonfinite_loss is NonFiniteLoss.RAISE,
            host_weights=partial(_weights_of, self.module),
        )

    def _common_switch(self) -> CommonSwitch | None:
        """What lets all processes that train or infer together switch to compiled code together."""
        group = self.pipeline_group
        if group is not None and self.plan is None:
            # Instances may infer different numbers of batches.
            return CommonSwitch(group.peers, self.tell, groups=[group], gather=group.gather)
        if group is not None:
            peers = group.peers
            return CommonSwitch(peers, self.tell, groups=[group, peers], gather=peers.gather_everywhere)
        return None if self.plan is None or self.peers is None else CommonSwitch(self.peers, self.tell)

    def _begin_ascent(self, session: Session) -> None:
        """Use compiled code that is ready or required, or prepare to compile."""
        choice, execution = session.choice, self.execution
        policy = compile_policy(choice, execution, session.strategy, has_peers=session.common_switch is not None)
        if policy is None:
            session.why_not_compiled = "its tier is fixed, or its options or devices need the graph"
            return
        switch = session.common_switch if policy.is_required else None
        if switch is not None:
            switch.begin_to_compile()
        try:
            found = self._first_code(session, policy)
        except Exception as error:
            if switch is None:
                raise
            raise switch.failure(error) from error
        if found is not None:
            entry, origin = found
            if switch is not None and session.ascent is not None:
                entry = switch.agree(session.ascent)
            session.use(entry)
            self.tell(TierChanged(tier=session.tier.value, updates=0, reason=f"{origin} ({entry.tuning.gain})"))

    def _first_code(self, session: Session, policy: CompilePolicy) -> tuple[Compiled, str] | None:
        """Prepare to compile; returns the code to start with and its origin, if there is any."""
        choice, execution, switch = session.choice, self.execution, session.common_switch
        ascent = session.ascent = ascents_for(
            session.strategy.programs_to_compile(session.captured),
            session.schedule,
            choice.capabilities.device,
            policy,
            directory=execution.cache_directory,
            tell=self.tell,
            about={
                "name": execution.name or type(self.module).__name__,
                "kind": "training" if session.captured.trains else "inference",
            },
            is_called_off=(lambda: False) if switch is None else switch.is_called_off,
        )
        if ascent is None:
            session.why_not_compiled = "it has no compiler, or no directory for compiled code"
            return None
        # Threads change the order of sums, so instances whose weights have to stay equal all keep the same number.
        if choice.capabilities.computes_in_threads and not policy.is_required and not policy.with_others:
            session.threads = ThreadTuner(torch.get_num_threads(), ascent.threads_file)
        return ascent.first_entry(
            lambda number: session.strategy.inputs_to_compile(number, self.sample()),
            lambda: dict(zip(session.captured.layout.buffers, self.module.buffers(), strict=True)),
            self.code,
        )

    def _locations(self, choice: Choice) -> Locations:
        return possible_locations(self.execution.locations, choice, trains=self.plan is not None)

    def _optimizer_shards(self) -> OptimizerShards | None:
        broadcast = None if self.peers is None else self.peers.broadcast
        return optimizer_shards_of(self.module, self.plan, self.execution, broadcast)


def _weights_of(module: nn.Module) -> dict[str, Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}
