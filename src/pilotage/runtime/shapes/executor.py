"""One program for each shape of a call, all of them on the same weights and the same state of the optimizer.

A smaller last batch, another batch size for validation, or a few lengths of sequences are calls of another shape. Each
gets its own program the first time. Switching between programs copies nothing if they can share a state on the
device.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from torch import nn

from pilotage.distributed.peers import Peers
from pilotage.distributed.pipeline_group import PipelineGroup
from pilotage.errors import InputError
from pilotage.events import Listener, Noted
from pilotage.execution.spread_state import ProgramState
from pilotage.execution.state import DeviceState
from pilotage.optim.comparing import changed_constants
from pilotage.optim.following import FollowedOptimizer
from pilotage.optim.rule import OptimizerPlan
from pilotage.options.batching import Batching
from pilotage.options.execution import Execution
from pilotage.program.program import Action
from pilotage.program.specification import TensorSpec
from pilotage.program.structure import Parsers
from pilotage.runtime.arrival_check import ArrivalCheck
from pilotage.runtime.call import BoundCall
from pilotage.runtime.executor import Executor
from pilotage.runtime.following.groups import refuse_lost_state
from pilotage.runtime.host_steps import HostSteps
from pilotage.runtime.session import Session
from pilotage.runtime.shapes.division import divided
from pilotage.strategies.single import SingleDevice
from pilotage.turns import in_turn


@dataclass(slots=True)
class _Kept:
    """A program for one shape."""

    session: Session
    execution: Execution
    arrival: ArrivalCheck | None = None
    """Its pending comparison with eager PyTorch, while a program for another shape is in use."""

    def is_for(self, call: BoundCall, batching: Batching) -> bool:
        """Whether the program takes a call that is divided like this."""
        program, parts = self.session.program, batching.micro_batches_per_call
        if self.execution.batching != batching or program.arguments != call.arguments:
            return False
        wanted = [(_part(tuple(each.shape), parts), each.dtype) for each in call.inputs]
        return wanted == [(tuple(each.shape), each.dtype) for each in program.inputs]


class ShapedExecutor(Executor):
    """An executor that has one program for each shape of its calls, and follows changes of what is trained.

    With other instances or stages, all calls need one shape: every process would have to change it at once.
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        execution: Execution,
        listeners: Iterable[Listener],
        plan: OptimizerPlan | None = None,
        optimizer: FollowedOptimizer | None = None,
        parsers: Parsers | None = None,
        peers: Peers | None = None,
        pipeline_group: PipelineGroup | None = None,
        host_steps: HostSteps | None = None,
    ) -> None:
        super().__init__(
            module,
            execution=execution,
            listeners=listeners,
            plan=plan,
            optimizer=optimizer,
            parsers=parsers,
            peers=peers,
            pipeline_group=pipeline_group,
            host_steps=host_steps,
            follows_module=True,
        )
        self._given = self.execution
        """The options as they were given; a call with fewer micro-batches has a smaller batching."""
        self._programs: list[_Kept] = []
        self._first: tuple[TensorSpec, ...] = ()
        """The micro-batch of the first call."""
        self._once_trained: set[str] = set()
        """Parameters that have been trained, some of which may be frozen since."""
        self._replaced: Session | None = None
        """The program whose state the next one takes over."""

    def _follows_shape(self, call: BoundCall) -> bool:
        if not self._has_several or not self._binder.has_other_shapes(call):
            return False
        self._change_shape(call)
        return True

    def _read(self, optimizer: FollowedOptimizer) -> None:
        if self._session is not None and self.plan is not None:
            plan = optimizer.plan(self._compiled_plan)
            if changes := changed_constants(self.plan, plan):
                refuse_lost_state(self.plan, plan, self._once_trained)
                self._tell(Noted(message=f"The optimizer has changed ({changes[0]}): the module is captured again."))
                self.regroup(plan)
                optimizer.note()
                return
        super()._read(optimizer)

    @in_turn
    def compile_for(self, call: BoundCall) -> None:
        """Capture and load the program for a call, beside those for other shapes."""
        if self._session is not None and self._replaced is None and self._has_several:
            if not self._follows_shape(call):
                self._binder.check(call)
            return
        self._divide(self._batching_of(call))
        super().compile_for(call)

    @property
    def _has_several(self) -> bool:
        """Whether there may be programs for several shapes."""
        return self._given.shapes > 1 and self.peers is None and self.pipeline_group is None

    def _batching_of(self, call: BoundCall) -> Batching:
        if not self._first or not self._has_several:
            return self._given.batching
        return divided(call, self._first, self._given.batching, self.signature.names)

    def _divide(self, batching: Batching) -> None:
        """Divide the following calls like this one."""
        period = min(self._given.output_period, batching.device_iterations)
        self.execution = replace(self._given, batching=batching, output_period=period)
        self._binder.divide(batching.micro_batches_per_call)

    def _change_shape(self, call: BoundCall) -> None:
        """Replace the present program by the one for a call."""
        self.session.refuse_torn()
        batching = self._batching_of(call)
        known = next((each for each in self._programs if each.is_for(call, batching)), None)
        if known is None and len(self._programs) >= self._given.shapes:
            raise self._too_many(call)
        present = next(each for each in self._programs if each.session is self._session)
        present.arrival, self._replaced = self._arrival, present.session
        try:
            if known is not None:
                self._use(known)
                self.attach()
            else:
                self._note_program(call)
                self._session = None
                self.compile_for(call)
        except BaseException:
            self._replaced = None
            self._use(present)
            raise

    def _use(self, kept: _Kept) -> None:
        self._session, self._arrival, self.rebuild = kept.session, kept.arrival, kept.session.rebuild
        self._divide(kept.execution.batching)
        self._binder.expect(kept.session.program.arguments, kept.session.program.inputs)

    def _note_program(self, call: BoundCall) -> None:
        number, limit = len(self._programs) + 1, self._given.shapes
        state = "" if self.plan is None else " and the same state of the optimizer"
        self._tell(
            Noted(
                message=f"A call with inputs of the shapes {_shapes(call)} gets its own program ({number} of at "
                f"most {limit}), on the same weights{state}."
            )
        )

    def _start(self, session: Session) -> None:
        super()._start(session)
        self._first = self._first or tuple(session.program.inputs)
        self._programs.append(_Kept(session, self.execution))
        self._once_trained.update(session.captured.layout.trained)

    @property
    def _compiled_plan(self) -> OptimizerPlan | None:
        # A program that shares its state keeps the values that the other programs have compiled in.
        return self.plan if self._replaced is not None else super()._compiled_plan

    @in_turn
    def attach(self) -> None:
        """Take the device: with the state of the program that is replaced, or with a copy of it."""
        replaced, self._replaced = self._replaced, None
        if replaced is None:
            super().attach()
            return
        session, state = self.session, replaced.strategy.state
        if not replaced.streams.shared:
            session.streams.states = replaced.streams.states
        if state is not None and _share(session, replaced, state):
            if self.plan is not None:
                state.load_values(self.plan)
            return
        session.kept_optimizer = replaced.kept_optimizer = replaced.optimizer_state()
        if state is not None:
            self.weights.detach()
        self._detach_programs()
        super().attach()

    @in_turn
    def detach(self) -> None:
        """Copy weights and optimizer state to the host and free the device."""
        super().detach()
        self._detach_programs()

    def _detach_programs(self) -> None:
        for kept in self._programs:
            kept.session.strategy.detach()

    def _capture_again(self) -> None:
        first = self._first
        super()._capture_again()
        self._first = first

    @in_turn
    def destroy(self) -> None:
        """Fetch the weights and drop all programs; the next call compiles again."""
        super().destroy()
        for kept in self._programs:
            kept.session.stop_ascent()
        self._programs.clear()
        self._first = ()
        self._divide(self._given.batching)

    def _too_many(self, call: BoundCall) -> InputError:
        return InputError(
            f"A call has inputs of the shapes {_shapes(call)}, but programs for {len(self._programs)} other shapes "
            f"exist already, which is the limit shapes={self._given.shapes}. Pad the inputs to a few sizes, for "
            "example by pilotage.batches(loader, step, buckets=[64, 128]), or give a higher limit: each program takes "
            "the time of a first call."
        )


def _share(session: Session, replaced: Session, state: ProgramState) -> bool:
    """Let a program run on the state that another one has on the device; returns whether it can."""
    new, old = session.strategy, replaced.strategy
    if not (isinstance(new, SingleDevice) and isinstance(old, SingleDevice) and isinstance(state, DeviceState)):
        return False
    pools = Action.UPDATE in new.program.computations and not state.flat_gradients.numel()
    same = new.devices == old.devices and len(new.devices) == 1 and new.replicas == old.replicas
    if not same or pools or new.program.layout != state.layout:
        return False
    new.share(old)
    return True


def _part(shape: tuple[int, ...], parts: int) -> tuple[int, ...]:
    return (shape[0] // parts, *shape[1:]) if parts > 1 and shape else shape


def _shapes(call: BoundCall) -> str:
    return ", ".join(str(list(tensor.shape)) for tensor in call.inputs)
