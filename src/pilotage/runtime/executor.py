"""A module that runs as a compiled program."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from pilotage.capture.model import modes_of
from pilotage.compiler.packed_code import PackedCode
from pilotage.distributed.peers import Peers
from pilotage.distributed.pipeline_group import PipelineGroup
from pilotage.errors import OptionError
from pilotage.events import CompilationProgress, Listener, TierChanged, Warned, hears_calls, tell_all
from pilotage.execution.walk import StepFailure
from pilotage.optim.comparing import with_values_of
from pilotage.optim.following import FollowedOptimizer
from pilotage.optim.rule import OptimizerPlan
from pilotage.options.choices import ReplicaGrouping, Tier
from pilotage.options.execution import Execution
from pilotage.program.layout import ReplicaGroups
from pilotage.program.program import Program
from pilotage.program.signature import CallSignature
from pilotage.program.specification import TensorSpec
from pilotage.program.structure import Parsers
from pilotage.runtime.announcing import presence_of
from pilotage.runtime.arrival_check import AroundForward, ArrivalCheck
from pilotage.runtime.call import BoundCall, CallBinder, Conversions, empty_micro_batch, first_micro_batch
from pilotage.runtime.compilation import Compilation
from pilotage.runtime.diagnosis import Failures
from pilotage.runtime.equal_start import checked_peers, common_settings, equalize
from pilotage.runtime.following.module import ModuleWatch
from pilotage.runtime.following.optimizer import FollowedState
from pilotage.runtime.host_steps import HostSteps
from pilotage.runtime.optimizer_state import OptimizerState
from pilotage.runtime.program_view import ProgramView
from pilotage.runtime.record import RunRecord
from pilotage.runtime.replica_groups import replica_groups
from pilotage.runtime.session import Session
from pilotage.runtime.weights import WeightKeeper
from pilotage.torch_private import OPTIMIZER_WAS_CALLED
from pilotage.turns import Turn, in_turn


class Executor(ProgramView):
    """Captures a module at its first call, and from then on runs the captured program on a device.

    With an optimizer plan the program trains. The device owns the weights; the module's tensors show them when read.

    Large because whatever a door or a drop-in does with a module goes through it.
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        execution: Execution | None = None,
        plan: OptimizerPlan | None = None,
        listeners: Iterable[Listener] = (),
        parsers: Parsers | None = None,
        conversions: Conversions | None = None,
        signature: CallSignature | None = None,
        peers: Peers | None = None,
        pipeline_group: PipelineGroup | None = None,
        optimizer: FollowedOptimizer | None = None,
        host_steps: HostSteps | None = None,
        follows_module: bool = False,
    ) -> None:
        self.module, self.plan, self.record = module, plan, RunRecord()
        self.execution = execution or Execution()
        self.modes = modes_of(module)
        """Which parts of the module were in training mode when it was wrapped."""
        self._presence = presence_of(self.execution, trains=plan is not None)
        all_listeners = (*listeners, self._presence.note)
        # Not a method: listeners must not keep the executor alive.
        self._tell, self._tell_of_call = partial(tell_all, all_listeners), tuple(filter(hears_calls, all_listeners))
        self._failures = Failures(self.execution.nonfinite_loss, self.record, self._tell)
        self._parsers = {} if parsers is None else parsers
        micro_batches = self.execution.batching.micro_batches_per_call
        self.signature = signature or CallSignature.of(module.forward)
        self._binder = CallBinder(self.signature, micro_batches, self._parsers, conversions)
        self.bind = self._binder.bind
        """Arranges the arguments of a call as the program takes them."""
        self.weights = WeightKeeper(module, self._tell, trains=plan is not None, sends_edits=follows_module)
        self._watch = ModuleWatch(module, self._tell, trains=plan is not None, follows=follows_module)
        self.turn = self.weights.turn if plan is not None else Turn()
        """Threads that use this executor take turns. Those that train take the turn of the weights."""
        self.calling: AbstractContextManager[object] = self.turn if plan is not None else self.turn.lock
        """The turn of one call; inference changes nothing, and a comparison protects itself from interrupts."""
        self._replica_groups: dict[str, ReplicaGroups] = {}
        self._kept: OptimizerState | None = None
        self._kept_streams: list[Tensor] | None = None
        self.peers = None if plan is None else checked_peers(peers, self.execution)
        """The other instances that share each update; None if there are none."""
        self.pipeline_group = pipeline_group
        """The processes that have the other stages of the model; None if this process has all of them."""
        self._is_synchronized = False
        self._followed = None if optimizer is None else FollowedState(optimizer, module, self.weights)
        """The optimizer that is read before each call; None if only `set_plan` changes the plan."""
        self.host_steps = host_steps or HostSteps(remedy=None)
        """Watches for optimizers that are stepped on the host although the device trains."""
        self.around_forward: AroundForward | None = None
        """What a drop-in does around each forward that eager PyTorch runs in a comparison."""
        self._arrival: ArrivalCheck | None = None
        """Compares the next call with eager PyTorch; None if none will be compared."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program on a batch and return what forward returns, by output mode."""
        with self.calling:
            outputs = self.run(self.bind(*args, **kwargs))
            return self.rebuild(outputs)

    def run(self, call: BoundCall) -> list[Tensor]:
        """Run the program on a call's inputs; returns the tensors of the outputs."""
        with self.calling:
            if torch.is_inference_mode_enabled() or not torch.is_grad_enabled():
                # Training computes its own gradients, and state made in inference mode could not be changed later.
                with torch.inference_mode(False), torch.enable_grad():
                    return self.run(call)
            session, start, trained = self._ready(call), time.perf_counter(), self.weights.trained
            try:
                if not self._is_synchronized:
                    self.synchronize()
                comparison = None if self._arrival is None else self._arrival.comparison(session, call, self.plan)
                if trained is not None:
                    trained.expect_change()
                if self._followed is not None:
                    self._followed.expect_change()
                outputs = session.run(call.inputs) if comparison is None else comparison.run()
            except BaseException as error:
                self._failures.recover(error, session.attached, trained)
                if isinstance(error, StepFailure):
                    raise self._failures.explained(error, trains=session.program.trains) from error.__cause__
                raise
            if trained is not None:
                trained.changed()
            elif session.program.written_buffers:
                self.weights.show_buffers()
            if self._arrival is not None and self._arrival.is_over and session.ascent is None:
                self._arrival = None
            if self._followed is not None:
                # torch's schedulers expect an update before they change a rate for the first time.
                setattr(self._followed.optimizer, OPTIMIZER_WAS_CALLED, True)
            if written := session.strategy.program.written_inputs:
                call.write_back(written)
            seconds = time.perf_counter() - start
            if session.threads is not None:
                session.tune_threads(seconds)
            done = self.record.count(session.device, session.tier.value, session.strategy.schedule, seconds)
            for listener in self._tell_of_call:
                listener(done)
            if session.ascent is not None or session.common_switch is not None:
                self._continue_ascent(session, call, seconds)
            return outputs

    @in_turn
    def synchronize(self) -> None:
        """Give all instances and stages the same weights now; otherwise the next call does it."""
        if not self._is_synchronized:
            own = () if self.execution.broadcast_buffers else self.session.captured.written_buffers
            settings, group = common_settings(self.execution, self.session.choice.tier), self.pipeline_group
            for unequal in equalize(self.module, self.session.attached, self.weights, group, self.peers, own, settings):
                self.warn(unequal)
            self._is_synchronized = True

    def _continue_ascent(self, session: Session, call: BoundCall, seconds: float) -> None:
        """Switch to compiled code if it is ready, and if all other instances are."""
        entry = session.next_code(seconds, lambda: first_micro_batch(call, session.program.inputs))
        if entry is None:
            return
        if not session.fits_layout_of(entry):
            self.detach()
        session.use(entry)
        if session.state is None:
            self.attach()
        if self._arrival is not None:
            self._arrival.begin_again()
        self.record.tier_changes.append((self.record.updates, session.tier.value))
        self._tell(TierChanged(tier=session.tier.value, updates=self.record.updates, reason=entry.tuning.gain))

    @in_turn
    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Capture and load the program for calls of this form, without running it."""
        self.compile_for(self.bind(*args, **kwargs))

    @in_turn
    def compile_for(self, call: BoundCall) -> None:
        """Capture and load the program for a call."""
        start = time.perf_counter()
        compilation, micro_batch = self.compilation_for(call)
        self.weights.fetch_for_reading()
        with torch.inference_mode(False), torch.enable_grad(), self._presence.entering():
            self._start(self._expecting_arrival(compilation).session(call.arguments, micro_batch))
        self.record.count_compilation(time.perf_counter() - start)

    def compilation_for(self, call: BoundCall) -> tuple[Compilation, tuple[TensorSpec, ...]]:
        """The compilation for a call, and the specification of its micro-batch."""
        if self._followed is not None:
            self._read(self._followed.settings)
        micro_batch = self._binder.micro_batch(call)
        self.modes = self._watch.modes()
        return self._compilation(partial(first_micro_batch, call, micro_batch)), micro_batch

    @in_turn
    def adopt(self, program: Program, optimizer: OptimizerState | None = None, code: PackedCode | None = None) -> None:
        """Load a program that was captured before, with its compiled code if that is trusted."""
        self._kept, self.plan = optimizer, program.plan
        compilation = self._compilation(partial(empty_micro_batch, program.inputs), code)
        self._start(self._expecting_arrival(compilation).session_of(program))

    def _expecting_arrival(self, compilation: Compilation) -> Compilation:
        """Prepare to compare the program of a compilation with eager PyTorch."""
        weights, around = self.weights, self.around_forward
        self._arrival = None if self.execution.check.is_off else ArrivalCheck(compilation, weights, around)
        return compilation

    def _start(self, session: Session) -> None:
        session.kept_optimizer, self._kept = self._kept, None
        if self._kept_streams is not None:
            session.streams.states, self._kept_streams = self._kept_streams, None
        self.weights.find_turn_again()
        if self.plan is not None:
            self.turn = self.calling = self.weights.turn
        self._binder.expect(session.program.arguments, session.program.inputs)
        self._session, self.rebuild = session, session.rebuild
        self._watch.begin(session.captured, is_static=session.choice.tier is not Tier.EAGER)
        self.attach()
        if self._followed is not None:
            self._followed.exchange(session, self.plan)
        self._tell(CompilationProgress(fraction=1.0, doing="done"))

    @in_turn
    def set_mode(self, training: bool) -> None:
        """Put the module in or out of training mode; a program captured in the other mode is captured again."""
        if self._session is not None:
            self._session.refuse_torn()
        self.module.train(training)
        self._watch.wrap()
        if (modes := modes_of(self.module)) != self.modes:
            self.modes = modes
            self._capture_again()

    def _capture_again(self) -> None:
        """Capture the module again at the next call, and continue training from the present state."""
        if self._session is not None:
            self._session.refuse_torn()
            optimizer, streams = self._session.optimizer_state(), self._session.streams
            self.destroy()
            self._kept = optimizer
            self._kept_streams = None if streams.shared else streams.states

    @in_turn
    def destroy(self) -> None:
        """Fetch the weights and drop the program; the next call compiles it again."""
        self.weights.detach()
        self.host_steps.end()
        if self._session is not None:
            self._session.stop_ascent()
        self._session = None
        self._presence.leave()
        self._binder.forget()

    @in_turn
    def attach(self) -> None:
        """Copy weights and optimizer state to the device."""
        self._is_synchronized = False
        with torch.inference_mode(False):
            self.session.attach(self.plan)
            any_process = None if self.pipeline_group is None else self.pipeline_group.any
            self.weights.attach(self.session.strategy, any_process)
        self.host_steps.begin(self.module.parameters())

    @in_turn
    def detach(self) -> None:
        """Copy weights and optimizer state to the host and free the device."""
        _ = self.session.attached
        self.session.refuse_torn()
        self.weights.detach()
        self.host_steps.end()
        self.session.detach()
        self._presence.leave()

    @in_turn
    def send_weights(self) -> None:
        """Send the module's own weights and buffers to the device."""
        self._is_synchronized = False
        self.weights.send(self.session.attached)
        self.host_steps.sent()

    @in_turn
    def send_buffers(self, names: Iterable[str]) -> None:
        """Send some of the module's buffers to the device."""
        self.weights.send_buffers(self.session.attached, names)

    @in_turn
    def fetch_weights(self) -> None:
        """Copy the device's weights and buffers to the module."""
        _ = self.session.attached
        self.weights.fetch()

    def group_replicas(self, parameter: str, members: int, grouping: ReplicaGrouping) -> None:
        """Give each group of replicas its own copy of a parameter, along the leading dimension of the host's tensor."""
        if self._session is not None:
            raise OptionError(f"The model is compiled: call destroy() before grouping the replicas of {parameter}.")
        batching = self.execution.batching
        self._replica_groups[parameter] = replica_groups(self.module, parameter, batching, members, grouping)

    @in_turn
    def set_optimizer_state(self, state: OptimizerState) -> None:
        """Continue training from another state of the optimizer."""
        self._is_synchronized = False
        self.session.set_optimizer_state(state)
        if self._followed is not None:
            self._followed.expect_change()

    def warn(self, message: str) -> None:
        """Warn the user, through the listeners."""
        self._tell(Warned(message=message))

    @in_turn
    def set_plan(self, plan: OptimizerPlan) -> None:
        """Continue training with other values of the optimizer; what was compiled in cannot change."""
        if self._session is not None and self.plan is not None:
            plan = with_values_of(self.plan, plan)
        if self.is_attached:
            self.session.attached.load_values(plan)
        self.plan = plan

    @in_turn
    def regroup(self, plan: OptimizerPlan) -> None:
        """Continue training with other groups of parameters; the next call captures the module for them."""
        self._capture_again()
        self.plan = plan

    @in_turn
    def follow(self, optimizer: FollowedOptimizer) -> None:
        """Continue training with the values of another optimizer, and read it before each call from now on."""
        self.set_plan(optimizer.first_plan(like=self._compiled_plan))
        self._followed = FollowedState(optimizer, self.module, self.weights)
        self.host_steps.optimizer = optimizer.optimizer

    @property
    def _compiled_plan(self) -> OptimizerPlan | None:
        return None if self._session is None else self.plan

    def _read(self, optimizer: FollowedOptimizer) -> None:
        """Read the optimizer's present values."""
        self.set_plan(optimizer.plan(self._compiled_plan))
        # Last, so that a refused change is refused again by every later call.
        optimizer.note()

    def _ready(self, call: BoundCall) -> Session:
        """The session for a call: compiled, attached, with the present weights and values of the optimizer."""
        followed = self._followed
        if followed is not None and self._session is not None and followed.settings.has_changed():
            self._read(followed.settings)
        if self.host_steps.noted:
            for report in self.host_steps.reports():
                self.warn(report)
        look, session = self._watch.look, self._session
        if session is not None and look is not None and look.differs() and self._watch.needs_capture(session.captured):
            self._capture_again()
        if self._session is None:
            self.compile_for(call)
        elif call.fits is not self._binder.expected and not self._follows_shape(call):
            self._binder.check(call)
        session = self._session or self.session
        if session.strategy.state is None:
            self.attach()
        elif self.weights.refresh(session.strategy.state):
            self._is_synchronized = False
        if followed is not None:
            followed.exchange(session, self.plan)
        session.check_call()
        return session

    def _follows_shape(self, call: BoundCall) -> bool:
        """Switch to the program for the shapes of a call; this executor has only one, so nothing happens."""
        return False

    def _compilation(self, sample: Callable[[], Sequence[Tensor]], code: PackedCode | None = None) -> Compilation:
        return Compilation(
            module=self.module,
            modes=self.modes,
            plan=self.plan,
            execution=self.execution,
            replica_groups=self._replica_groups,
            parsers=self._parsers,
            tell=self._tell,
            on_failure=self._failures.may_continue,
            sample=sample,
            peers=self.peers,
            pipeline_group=self.pipeline_group,
            code=code,
        )
