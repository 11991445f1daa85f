"""The wrapped model: a module that runs as a compiled program."""

from __future__ import annotations

import functools
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from operator import is_not
from pathlib import Path
from threading import get_ident
from types import MethodType
from typing import Any, NoReturn, Self

import torch
from torch import Tensor, nn

from pilotage.engine import (
    INTERRUPTS,
    BoundCall,
    Executor,
    GuardedModel,
    HostSteps,
    StoredModel,
    Tier,
    Turn,
    is_profiler_enabled,
    log_event,
    peers_as,
    pipeline_group_here,
    shorten,
)
from pilotage.engine import OutputMode as EngineOutputMode
from poptorch._args_parser import registered_parsers
from poptorch._capture.capturing import Capture, capturing
from poptorch._checks.buffers import check_buffer_names, check_program
from poptorch._checks.host_changes import HostChanges
from poptorch._checks.loss_advice import LossAdvice
from poptorch._checks.options_without_effect import note_options_without_effect
from poptorch._errors import SHORT_TRACEBACKS, createPoptorchError, translated, translated_without
from poptorch._executor.calls import InputAdvice, as_outputs, warn_of_host_outputs
from poptorch._executor.optimizer_link import OptimizerLink
from poptorch._executor.pickling import Picklable
from poptorch._executor.proxies import seen_through
from poptorch._executor.random_state import random_state, set_random_state
from poptorch._executor.snapshot import snapshot
from poptorch._executor.types_on_device import input_conversions
from poptorch._executor.weight_copies import WeightCopies, implicit_copy
from poptorch._logging import limited_repeats, logger
from poptorch._observation.anchors import Anchors
from poptorch._observation.exported_program import show_program
from poptorch._observation.ipu_model import ipu_model_of
from poptorch._observation.observing import Observing
from poptorch._observation.performance import PerformanceCounters
from poptorch._observation.profile import profile_of
from poptorch._observation.progress import ProgressBar
from poptorch._options.execution import execution_of, resolved
from poptorch._options.locations import advise_on_locations
from poptorch._printing import module_repr
from poptorch.enums import ConnectionType
from poptorch.options import Options
from poptorch.poptorch_core import Error, _validateOptions
from poptorch.profiling import Channel

__all__ = ["PoplarExecutor"]

_REMEDY = (
    "Leave it out, or give this optimizer to poptorch.trainingModel or setOptimizer to train with it. If the host is "
    "meant to "
    "train as well, call copyWeightsToDevice() on the wrapped model after its steps."
)

_UNOBSERVED = nullcontext()

_COMPILING = Turn()
"""One compilation at a time: libraries replace functions for the whole process meanwhile."""


class PoplarExecutor(Observing, WeightCopies, Picklable, GuardedModel):
    """What `trainingModel` and `inferenceModel` return; called like the module that it wraps.

    Large because it has the methods of PopTorch's class of this name.
    """

    def __init__(
        self,
        model: nn.Module,
        options: Options,
        *,
        training: bool,
        optimizer: torch.optim.Optimizer | None = None,
        stored: StoredModel | None = None,
    ) -> None:
        self._user_model = model
        self._options = resolved(options, training=training)
        self._options._freeze()
        self._is_offline = self._options.connection_type == ConnectionType.Never
        self.trains = training
        self.destroyed = False
        """Whether the module may be wrapped for training again."""
        self._counts_cycles = self._options._Popart.settings.counts_cycles
        self._link = OptimizerLink(model, self._options, optimizer) if optimizer is not None else None
        self._advice = InputAdvice()
        self._loss_advice = LossAdvice()
        self._changes = HostChanges(model, trains=training)
        self._bar = ProgressBar() if self._options._show_compilation_progress_bar else None
        self._capture: Capture | None = None
        self._runs_eagerly = False
        """Whether forward runs at each call, as it does in the eager tier."""
        excluded = self._options._source_location_excludes
        self._explained: Callable[[], AbstractContextManager[object]] = (
            functools.partial(translated_without, excluded) if excluded else translated
        )
        """Raises errors under their PopTorch name; messages name no line of an excluded file."""
        self._caller: int | None = None
        """The thread of the last call."""
        self._profile = profile_of(self._options, training=training)
        self._ipu_model = ipu_model_of(self._options, type(model).__name__, training=training)
        """Predicts the program on an IPU, if the options ask for that."""
        self._channel = Channel("poptorch.trainingModel" if training else "poptorch.inferenceModel")
        self._is_observed = self._profile is not None or self._channel.may_be_traced
        """Whether runs are recorded even if torch's profiler is off."""
        execution = execution_of(options, training=training)
        self._anchors = Anchors(self._options, execution)
        if self._anchors.labels:
            execution = replace(execution, anchors=self._anchors.labels, outputs=EngineOutputMode.ALL)
        module = snapshot(model)
        self.engine = Executor(
            module,
            execution=execution if self._link is None else self._link.adapted(execution),
            plan=self._link.plan if self._link else (stored.program.plan if stored else None),
            listeners=[log_event] if self._bar is None else [log_event, self._bar],
            parsers=registered_parsers(),
            conversions=input_conversions(module),
            signature=stored.signature if stored else None,
            peers=peers_as(execution.instance, execution.batching.instances) if training else None,
            pipeline_group=pipeline_group_here(),
            host_steps=HostSteps(optimizer, remedy=_REMEDY, reports_own=False) if training else None,
        )
        self._executor = self.engine
        self.engine.weights.read_by = implicit_copy(weakref.ref(self))
        self._performance = PerformanceCounters(self._options, self.engine)

    # Running and compiling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model on a batch; a training model is also updated."""
        if self._is_offline or self._counts_cycles:
            self._refuse_to_run()
        try:
            with self.engine.calling, self._explained():
                self._caller = get_ident()
                call = self.engine.bind(*args, **kwargs)
                if any(map(is_not, call.inputs, call.tensors)):
                    self._advice.on(call)
                if call.fits is None and not self.engine.is_compiled:
                    self._compile(call)
                else:
                    self._changes.check(self.engine)
                if self._link is not None and self._link.before_run(self.engine):
                    self._compile(call)
                    self._link.before_run(self.engine)
                is_observed = self._is_observed or is_profiler_enabled()
                with self._observed() if is_observed else _UNOBSERVED:
                    start = time.perf_counter()
                    outputs = self._run_eagerly(call) if self._runs_eagerly else self.engine.run(call)
                    self._performance.last_call = start, time.perf_counter()
                if self._ipu_model is not None:
                    self._ipu_model.after_run(self.engine, call)
                if self._anchors.are_taken:
                    outputs = self._anchors.take(outputs, self.engine)
                return self.engine.rebuild(as_outputs(outputs))
        except Exception as error:
            shorten(error, meant_for_users=Error)
            raise

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile for calls like this one, without running."""
        with SHORT_TRACEBACKS, self.engine.turn, self._explained():
            if self.isCompiled():
                logger.warning(
                    "Call to compile() ignored: the model is already compiled. Call destroy() first to compile it "
                    "again."
                )
                return
            call = self.engine.bind(*args, **kwargs)
            self._advice.on(call)
            self._compile(call)

    def compileAndExport(self, filename: str | Path, *args: Any, export_model: bool = True, **kwargs: Any) -> None:
        """Compile for calls like this one and write the model to a file."""
        with self._channel.tracepoint("compileAndExport"):
            if not self.isCompiled():
                self.compile(*args, **kwargs)
            self.save(filename, export_model=export_model)

    def save(self, filename: str | Path, export_model: bool = True, save_rng_state: bool = True) -> None:
        """Write the compiled model to a file that `poptorch.load` runs."""
        from poptorch._executor.files import save_executable

        with self._channel.tracepoint("saveExecutableToFile"), self.engine.turn, INTERRUPTS.open():
            save_executable(self, filename, export_model=export_model, save_rng_state=save_rng_state)

    def adopt(self, stored: StoredModel) -> None:
        """Use a program that was compiled before; the settings of a given optimizer override those in the file."""
        with self.engine.turn:
            self.engine.adopt(stored.program, stored.optimizer, stored.code)
            try:
                if self._link is not None:
                    self._link.set(self._link.optimizer, self.engine)
            except BaseException:
                self.engine.destroy()
                raise
            self._settle()

    def loadExecutable(
        self,
        filename: str | Path,
        *,
        trusted: bool = False,
        allow_operations: Iterable[str] = (),
        max_memory: int | None = None,
    ) -> None:
        """Use the program of a file instead of compiling; checks are those of `poptorch.load`."""
        from poptorch._executor.files import load_executable

        with self._channel.tracepoint("loadExecutable"):
            load_executable(self, filename, trusted=trusted, allow_operations=allow_operations, max_memory=max_memory)

    def isCompiled(self) -> bool:
        """Whether the model is compiled."""
        return self.engine.is_compiled

    def destroy(self) -> None:
        """Copy weights and optimizer state to the host and drop the program; the module can be wrapped again."""
        with self.engine.turn:
            if self._link is not None:
                self._link.let_go(self.engine)
            self.engine.destroy()
            self.destroyed = True

    # Device

    def isAttachedToDevice(self) -> bool:
        """Whether the model holds its device."""
        return self.engine.is_attached

    def attachToDevice(self) -> None:
        """Take the device again after `detachFromDevice`."""
        if self._is_offline:
            self._refuse_to_run()
        with translated():
            self.engine.attach()

    def detachFromDevice(self) -> None:
        """Copy weights and optimizer state to the host, and free the device."""
        with translated():
            self.engine.detach()

    # Optimizer, random numbers

    def setOptimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Read the optimizer's current values."""
        if not self.trains:
            raise createPoptorchError("An inference model has no optimizer. Use poptorch.trainingModel.")
        with self.engine.turn, translated():
            if self._link is None:
                # A model from a file is trained with the values in the file until it gets an optimizer.
                self._link = OptimizerLink(self._user_model, self._options, optimizer, compiled=self.engine.plan)
            self._link.set(optimizer, self.engine)

    @property
    def rng_state(self) -> list[int]:
        """The seed and the state of the model's random streams."""
        with self.engine.turn, translated():
            return random_state(self.engine)

    @rng_state.setter
    def rng_state(self, state: list[int]) -> None:
        with self.engine.turn, translated():
            set_random_state(self.engine, state)

    def train(self, mode: bool = True) -> Self:
        """Set the module's training mode; a compiled program is captured again at the next call."""
        with self.engine.turn:
            self._user_model.train(mode)
            changes = any(part.training != mode for part in self.engine.module.modules())
            if changes and self._link is not None and self.isCompiled():
                self._link.let_go(self.engine)
            return super().train(mode)

    @property
    def model(self) -> nn.Module:
        """The module that is wrapped."""
        return self._user_model

    @property
    def options(self) -> Options:
        """The model's options, with all defaults resolved."""
        return self._options

    def __getattr__(self, name: str) -> Any:
        """Look up other attributes in the module."""
        if name.startswith("__") or "_user_model" not in self.__dict__:
            raise AttributeError(name)
        value = getattr(self._user_model, name)
        if isinstance(value, MethodType) and value.__self__ is self._user_model:
            return self._staying_wrapped(value)
        return seen_through(self.engine, value)

    def __repr__(self) -> str:
        return module_repr(self._user_model)

    def _staying_wrapped(self, method: MethodType) -> Callable[..., Any]:
        """A method of the module that returns the wrapper instead of the module, for ``model = model.method()``."""

        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = method(*args, **kwargs)
            return self if result is self._user_model else seen_through(self.engine, result)

        return call

    def _observed(self) -> AbstractContextManager[object]:
        """Record the run as a span, in the profile too if there is one."""
        stack = ExitStack()
        if self._profile is not None:
            stack.enter_context(self._profile.following())
        stack.enter_context(self._channel.tracepoint("modelExecution"))
        return stack

    def _run_eagerly(self, call: BoundCall) -> list[Tensor]:
        """Run forward, with the checks of a compilation at each call."""
        assert self._capture is not None
        with self._capture.following(self.engine.module):
            outputs = self.engine.run(call)
        check_program(self._user_model, self.engine.program)
        self._loss_advice.on(self.engine.captured)
        return outputs

    def _compile(self, call: BoundCall) -> None:
        with self.engine.turn:
            with _COMPILING, self._compiling(call), self._channel.tracepoint("modelCompilation"):
                self.engine.compile_for(call)
                note_options_without_effect(self._options, runs_on_host=self.engine.runs_on_host)
                check_program(self._user_model, self.engine.program)
                self._anchors.check(self.engine)
                self._loss_advice.on(self.engine.captured)
                warn_of_host_outputs(self.engine.program)
                show_program(self.engine.program)
                if self._ipu_model is not None:
                    self._ipu_model.examine(self.engine, call)
            self._settle()
            assert self._capture is not None
            self._capture.host_seed.apply()

    def _settle(self) -> None:
        """Finish the set-up of a new program."""
        self._changes.begin()
        self._runs_eagerly = self._capture is not None and self.engine.chosen_tier is Tier.EAGER
        if self._link is not None:
            self._link.begin(self.engine)
        if self._is_offline:
            if self._link is not None:
                self._link.go_offline()
            self.engine.detach()

    @contextmanager
    def _compiling(self, call: BoundCall) -> Iterator[None]:
        options = self._options
        with self._channel.tracepoint("graphPreprocessing"):
            _validateOptions(options.toDict())
            check_buffer_names(self._user_model, self._updatable_buffers())
            self._advice.on_compilation(call)
            advise_on_locations(options)
        with ExitStack() as stack:
            stack.enter_context(limited_repeats(options.max_repeat_logs))
            self._capture = stack.enter_context(capturing(self.engine.module, options, training=self.trains))
            self.engine.around_forward = self._capture.repeating
            if self._ipu_model is not None:
                stack.enter_context(self._ipu_model.noting_modules(self.engine))
            if self._bar is not None:
                stack.callback(self._bar.close)
            try:
                yield
            except BaseException:
                self.engine.destroy()
                raise

    def _refuse_to_run(self) -> NoReturn:
        if self._is_offline:
            raise AssertionError(
                "Trying to run a model on an offline device (ConnectionType.Never). Save it with compileAndExport, "
                "and load the file with poptorch.load to run it."
            )
        raise createPoptorchError(
            "Cycle count logging is only supported on actual IPU hardware. Leave out logCycleCount(True)."
        )
