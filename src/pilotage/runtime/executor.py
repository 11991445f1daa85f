"""A module that runs as a compiled program."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor, nn

from pilotage.backends.registry import Choice, choose
from pilotage.backends.walk import StepFailure
from pilotage.errors import AttachmentError, BufferBroadcastError, NotCompiledError, OptionError
from pilotage.events import BackendChosen, CompilationProgress, Event, Listener, StepsRun, Warned
from pilotage.optim.comparing import changed_constants
from pilotage.optim.rule import OptimizerPlan
from pilotage.options.choices import NonFiniteLoss, OutputMode, Tier
from pilotage.options.execution import Execution
from pilotage.program.capture import Request, capture, uncaptured
from pilotage.program.model import modes_of
from pilotage.program.program import Program
from pilotage.program.schedule import make_schedule
from pilotage.program.structure import Parsers, put_together
from pilotage.runtime.call import BoundCall, CallBinder
from pilotage.runtime.diagnosis import explain, is_nonfinite_loss
from pilotage.runtime.host import TrainedWeights, owners_of
from pilotage.runtime.record import RunRecord
from pilotage.runtime.session import Session, new_state, new_streams


class Executor:
    """Captures a module at its first call, and from then on runs the captured program on a device.

    With an optimizer plan the program trains; without one it only infers. The device owns the weights meanwhile, and
    the module's own tensors show the trained values whenever they are read.
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        execution: Execution | None = None,
        plan: OptimizerPlan | None = None,
        listeners: Iterable[Listener] = (),
        parsers: Parsers | None = None,
    ) -> None:
        self.module = module
        self.execution = execution or Execution()
        self.plan = plan
        self.record = RunRecord()
        self.modes = modes_of(module)
        """Which parts of the module were in training mode when it was wrapped."""
        self._listeners = tuple(listeners)
        self._parsers = parsers or {}
        self._binder = CallBinder(module.forward, self.execution.batching.micro_batches_per_call, self._parsers)
        self._session: Session | None = None
        self._weights: TrainedWeights | None = None
        self._seen: dict[int, int] = {}

    # Running

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program on a batch and return what forward returns, by output mode."""
        outputs = self.run(self.bind(*args, **kwargs))
        return put_together(self.output_structure, outputs)

    def bind(self, *args: Any, **kwargs: Any) -> BoundCall:
        """Arrange the arguments of a call as the program takes them."""
        return self._binder.bind(args, kwargs)

    def run(self, call: BoundCall) -> list[Tensor]:
        """Run the program on a call's inputs; returns the tensors of the outputs."""
        session = self._ready(call)
        start = time.perf_counter()
        try:
            outputs = session.run(call.inputs)
        except StepFailure as failure:
            assert isinstance(failure.__cause__, Exception)
            explained = explain(failure, failure.__cause__, self.record.updates)
            raise (explained or failure.__cause__) from failure.__cause__
        self._written_back(call)
        self._after_run(session, time.perf_counter() - start)
        return outputs

    @property
    def output_structure(self) -> Any:
        """How the outputs are nested."""
        program = self._compiled().program
        if program.outputs is not None:
            return program.outputs
        first = next(iter(program.computations.values())).function
        return first.model.findings.outputs  # type: ignore[attr-defined]

    # Compiling

    @property
    def is_compiled(self) -> bool:
        """Whether there is a program."""
        return self._session is not None

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Capture and load the program for calls like this one, without running it."""
        self.compile_for(self.bind(*args, **kwargs))

    def compile_for(self, call: BoundCall) -> None:
        """Capture and load the program for a call."""
        start = time.perf_counter()
        self._progress(0.0, "choosing a device")
        choice = choose(self.execution.backend, self.execution.tier)
        self._tell(
            BackendChosen(
                backend=choice.backend.name,
                device=str(choice.backend.device),
                tier=choice.tier.value,
                reason=choice.reason,
            )
        )
        self._progress(0.05, "capturing")
        micro_batch = self._binder.accept_first(call)
        self._fetch_all()
        try:
            self._load(choice, self._capture(choice, call, micro_batch))
        except BaseException:
            self._binder.forget()
            raise
        self.record.compilations += 1
        self.record.compilation_seconds += time.perf_counter() - start
        self._progress(1.0, "done")

    def _capture(self, choice: Choice, call: BoundCall, micro_batch: tuple[Any, ...]) -> Program:
        request = Request(
            module=self.module,
            arguments=call.arguments,
            inputs=micro_batch,
            modes=self.modes,
            plan=self.plan,
            batching=self.execution.batching,
            reduction=self.execution.gradient_reduction,
            check_loss=self.execution.nonfinite_loss is not NonFiniteLoss.IGNORE,
            device=choice.backend.device,
            parsers=self._parsers,
        )
        program = uncaptured(request) if choice.tier is Tier.EAGER else capture(request)
        for warning in program.warnings:
            self._tell(Warned(message=warning))
        self._refuse_unequal_buffers(program)
        return program

    def _load(self, choice: Choice, program: Program) -> None:
        self._progress(0.8, "loading")
        default = OutputMode.FINAL if program.trains else OutputMode.ALL
        mode = self.execution.output_mode or default
        period = self.execution.output_period
        schedule = make_schedule(self.execution.batching, trains=program.trains, mode=mode, period=period)
        self._session = Session(
            choice=choice,
            program=program,
            schedule=schedule,
            executable=choice.backend.load(program, schedule, self._forgive),
            state=None,
            streams=new_streams(choice, self.execution),
        )
        self.attach()

    def _refuse_unequal_buffers(self, program: Program) -> None:
        if self.execution.batching.replicas > 1 and self.execution.broadcast_buffers and program.written_buffers:
            raise BufferBroadcastError(
                f"forward writes to the buffer {program.written_buffers[0]!r}, and each of the "
                f"{self.execution.batching.replicas} replicas would get its own value. "
                "Set broadcast_buffers to False if the model can live with that."
            )

    # Attaching

    @property
    def is_attached(self) -> bool:
        """Whether the program holds its device."""
        return self._session is not None and self._session.state is not None

    def attach(self) -> None:
        """Put weights and optimizer state on the device."""
        session = self._compiled()
        if session.state is not None:
            raise AttachmentError("Device is already attached. Call detach first.")
        session.state = new_state(session.program, session.choice, self.execution, self.plan)
        self.load_weights()
        if session.parked is not None:
            session.import_optimizer(session.parked)
        if self.plan is not None:
            self._weights = TrainedWeights(self._host_tensors(), self._device_tensors)

    def detach(self) -> None:
        """Bring weights and optimizer state home and free the device."""
        session = self._compiled()
        if session.state is None:
            raise AttachmentError("Device is not attached. Nothing is there to detach from.")
        self._let_go_of_weights()
        session.parked = session.export_optimizer()
        session.state = None

    def destroy(self) -> None:
        """Bring the weights home and drop the program; the next call compiles anew."""
        self._let_go_of_weights()
        self._session = None
        self._binder.forget()

    # Weights and optimizer

    def load_weights(self) -> None:
        """Send the module's own weights to the device."""
        state = self._attached()
        self._fetch_all()
        if self._weights is not None:
            self._weights.discard()
        state.load_weights(dict(self.module.named_parameters()), dict(self.module.named_buffers()))
        self._seen = {id(owner): owner.version for owner in self._other_owners()}

    def fetch_weights(self) -> None:
        """Bring the device's weights and buffers to the module."""
        state = self._attached()
        if self._weights is not None:
            self._weights.fetch()
        else:
            for name, tensor in self._host_tensors().items():
                if name in state.layout.buffers:
                    tensor.copy_(self._device_tensors()[name])

    def fetch_weights_if_needed(self) -> bool:
        """Bring the device's weights home if they are newer; tells whether they were."""
        return self._weights.fetch() if self._weights is not None else False

    def set_plan(self, plan: OptimizerPlan) -> None:
        """Train on with other values of the optimizer; what was compiled in cannot change."""
        if self._session is not None and self.plan is not None:
            if differences := changed_constants(self.plan, plan):
                raise OptionError(
                    f"These parts of the optimizer are compiled into the program and cannot change: "
                    f"{', '.join(differences)}. Mark them as variable before compiling, or destroy() and compile again."
                )
            if self._session.state is not None:
                self._session.state.load_values(plan)
        self.plan = plan

    @property
    def session(self) -> Session:
        """The compiled program with its state; raises if there is none."""
        return self._compiled()

    # Inside

    def _ready(self, call: BoundCall) -> Session:
        if self._session is None:
            self.compile_for(call)
        else:
            self._binder.check(call)
        session = self._compiled()
        if session.state is None:
            self.attach()
        elif any(self._seen.get(id(owner)) != owner.version for owner in self._other_owners()):
            self.load_weights()
        return session

    def _after_run(self, session: Session, seconds: float) -> None:
        if self._weights is not None:
            self._weights.changed()
        schedule = session.schedule
        tier = session.choice.tier.value
        self.record.count(session.device, tier, schedule.micro_batches, schedule.updates)
        if self._listeners:
            self._tell(
                StepsRun(
                    device=session.device,
                    tier=tier,
                    micro_batches=schedule.micro_batches,
                    updates=schedule.updates,
                    seconds=seconds,
                )
            )

    def _written_back(self, call: BoundCall) -> None:
        for position in self._compiled().program.written_inputs:
            given, used = call.tensors[position], call.inputs[position]
            if given.data_ptr() != used.data_ptr():
                given.detach().copy_(used)

    def _forgive(self, failure: StepFailure, error: Exception) -> bool:
        if self.execution.nonfinite_loss is not NonFiniteLoss.WARN or not is_nonfinite_loss(error):
            return False
        self._tell(Warned(message=f"{explain(failure, error, self.record.updates)} Training goes on, unchecked."))
        return True

    def _host_tensors(self) -> dict[str, Tensor]:
        return {**dict(self.module.named_parameters()), **dict(self.module.named_buffers())}

    def _device_tensors(self) -> Mapping[str, Tensor]:
        state = self._attached()
        return {**state.parameters, **state.buffers()}

    def _other_owners(self) -> list[TrainedWeights]:
        if self.plan is not None:
            return []
        return owners_of(self._host_tensors().values())

    def _fetch_all(self) -> None:
        for owner in owners_of(self._host_tensors().values()):
            owner.fetch()

    def _let_go_of_weights(self) -> None:
        if self._weights is not None:
            self._weights.release()
            self._weights = None

    def _compiled(self) -> Session:
        if self._session is None:
            raise NotCompiledError("Model has not been compiled or has been destroyed. Call it once, or compile() it.")
        return self._session

    def _attached(self) -> Any:
        session = self._compiled()
        if session.state is None:
            raise AttachmentError("Device is not attached. Call attach first.")
        return session.state

    def _progress(self, fraction: float, doing: str) -> None:
        self._tell(CompilationProgress(fraction=fraction, doing=doing))

    def _tell(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)
