"""Programs of the engine: each of their updates, however many of them one call makes.

A hidden output of each step is the loss that backward starts from, whatever forward returns and however often the
outputs come back to the host.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from pilotage.proof.watching.lines import users_line
from pilotage.proof.watching.modules import ModeCheck, ModuleWatch
from pilotage.proof.watching.optimizers import OptimizerWatch, WatchedOptimizer
from pilotage.proof.watching.patching import replace_function
from pilotage.proof.watching.precision import program_types
from pilotage.proof.watching.random_numbers import reseed
from pilotage.proof.watching.splitting.check import SplitCheck
from pilotage.proof.watching.splitting.forward_record import ForwardRecord
from pilotage.proof.watching.watch import NamedWeights, Watch, mean_loss

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pilotage.execution.random_streams import RandomStreams
    from pilotage.execution.state import DeviceState
    from pilotage.execution.walk import WalkedExecutable
    from pilotage.optim.rule import OptimizerPlan
    from pilotage.program.program import Program
    from pilotage.program.schedule import Step
    from pilotage.proof.watching.loaders import Load
    from pilotage.runtime.call import BoundCall
    from pilotage.runtime.executor import Executor
    from pilotage.runtime.session import Session

__all__ = ["ProgramWatch"]


class _Calls:
    """The calls of one executor: how far the current one is, and what rarely changes between calls.

    Large because it keeps everything that rarely changes: code between two steps of a program must be short, so this is
    looked up only when the weights are digested, or when the program, its optimizer or its modes change.
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.line: str | None = None
        self.is_described = False
        self.micro_batches = 0
        self.updates = 0
        self.loads: list[Load] = []
        self.session: Session | None = None
        self.types: dict[str, Any] = {}
        """Those of the session's program."""
        self.plan: OptimizerPlan | None = None
        self.modes: dict[nn.Module, bool] | None = None
        self.facts: dict[str, Any] = {}
        self.share = 1
        """How many updates a call makes."""
        self.reseeds = False
        """Whether the program draws random numbers."""
        self.exchanges = self.is_in_eval_mode = False
        self.weights: _TrainedWeights | None = None
        self.stamp: tuple[object, ...] = ()
        self.optimizer: WatchedOptimizer | None = None
        self.rates: list[float] = []


class ProgramWatch:
    """Follows the programs of this process."""

    def __init__(self, watch: Watch, optimizers: OptimizerWatch, modules: ModuleWatch, split: SplitCheck) -> None:
        self._watch = watch
        self._optimizers = optimizers
        self._modules = modules
        self._split = split
        self._call: _Calls | None = None
        self._given: dict[int, torch.optim.Optimizer] = {}
        """The optimizer that each executor trains with, by the address of the executor."""
        self.wrapper_of: Callable[[Executor], int | None] = lambda executor: None
        """The number of the wrapper that an executor belongs to."""

    # Installation, module by module

    def follow_executor(self, module: ModuleType) -> None:
        """`pilotage.runtime.executor` was imported."""
        replace_function(module.Executor, "run", self._run)
        replace_function(module.Executor, "compile_for", self._compile)
        for name in ("detach", "send_weights"):
            replace_function(module.Executor, name, self._before_other_weights)

    def follow_walk(self, module: ModuleType) -> None:
        """`pilotage.execution.walk` was imported."""
        replace_function(module.WalkedExecutable, "run_step", self._run_step)

    def follow_compilation(self, module: ModuleType) -> None:
        """`pilotage.runtime.compilation` was imported."""
        replace_function(module, "anchored", self._anchored)

    def follow_steps(self, module: ModuleType) -> None:
        """`pilotage.capture.steps` was imported: the eager tier shows its losses there."""
        replace_function(module, "label", self._labelled)

    def follow_cuda(self, module: ModuleType) -> None:
        """`pilotage.devices.cuda` was imported: a recorded CUDA graph would hide its steps."""
        replace_function(module, "can_be_recorded", lambda original: lambda *args, **kwargs: False)

    # Calls

    def _run(self, original: Callable[[Executor, BoundCall], list[Tensor]]) -> Callable[..., list[Tensor]]:
        watch = self._watch

        def run(executor: Executor, call: BoundCall) -> list[Tensor]:
            if executor.plan is None or self._call is not None:
                return original(executor, call)
            own = executor.__dict__.get(_OWN)
            if own is None:
                own = executor.__dict__[_OWN] = _Calls(executor)
            if watch.is_digested or own.plan is None:
                own.line = users_line()
            self._call = own
            own.updates = own.micro_batches = 0
            own.loads = watch.pending.batches
            watch.is_in_program = True
            try:
                outputs = original(executor, call)
            finally:
                watch.is_in_program = False
                self._call = None
            if not own.updates:
                # Stages in several processes run by other code than the steps of one process.
                self._finish_unseen(own, outputs)
            if not own.is_described:
                own.is_described = True
                self._describe(executor, call, own.line)
            return outputs

        return run

    def _compile(self, original: Callable[[Executor, BoundCall], None]) -> Callable[..., None]:
        def compile_for(executor: Executor, call: BoundCall) -> None:
            # A capture runs forward too, on tensors without values.
            outside, self._watch.is_in_program = self._watch.is_in_program, True
            try:
                original(executor, call)
            finally:
                self._watch.is_in_program = outside

        return compile_for

    def _before_other_weights(self, original: Callable[[Executor], None]) -> Callable[[Executor], None]:
        def change(executor: Executor) -> None:
            own = executor.__dict__.get(_OWN)
            if own is not None and own.weights is not None:
                if own.weights is self._watch.weights:
                    self._watch.digest_last()
                own.weights.let_go()
            original(executor)

        return change

    def _finish_unseen(self, own: _Calls, outputs: list[Tensor]) -> None:
        losses = [mean_loss(each) for each in outputs if each.is_floating_point() and each.dim() <= 1]
        for _ in range(own.executor.session.schedule.updates):
            self._watch.pending.losses = losses[-1:]
            self._close(own)

    def _run_step(self, original: Callable[..., list[Tensor]]) -> Callable[..., list[Tensor]]:
        watch = self._watch

        def run_step(
            walked: WalkedExecutable,
            number: int,
            step: Step,
            state: DeviceState,
            streams: RandomStreams,
            batch: Sequence[Tensor],
        ) -> list[Tensor]:
            own = self._call
            if own is None:
                outputs = original(walked, number, step, state, streams, batch)
                if batch and walked.program.anchors[-1:] == _HIDDEN_LAST:
                    outputs.pop()
                return outputs
            if not watch.has_start:
                watch.before_update(lambda: _parameters(own.executor, own.executor.session))
            executor = own.executor
            if own.plan is not executor.plan or own.modes is not executor.modes or own.session is not executor.session:
                self._look_up(own)
            # Without a loader, random numbers continue after those of the script's batch, as in eager code.
            if own.reseeds and own.loads and batch and streams.shared:
                reseed(watch.settings.seed, watch.updates, own.micro_batches)
            outputs = original(walked, number, step, state, streams, batch)
            if batch:
                own.micro_batches += 1
                if walked.program.anchors[-1:] == _HIDDEN_LAST:
                    # Not converted: operations between steps cost more than all other watching.
                    watch.pending.losses.append(outputs.pop())
                if watch.updates == 0:
                    watch.pending.facts["returned"] = [float(each) for each in outputs if _is_scalar(each)]
            if step.action.value in ("train", "update"):
                self._close(own)
            return outputs

        return run_step

    def _close(self, own: _Calls) -> None:
        watch, loads = self._watch, own.loads
        if watch.is_digested or own.plan is None:
            self._look_up(own)
        pending = watch.pending
        pending.batches = loads if own.share == 1 else _share_of(loads, own.updates, own.share)
        own.updates += 1
        own.micro_batches = 0
        if loads:
            pending.loader = loads[-1].loader
        else:
            reseed(watch.settings.seed, watch.updates + 1, 0)
        if own.exchanges:
            pending.exchanges += 1
        if own.weights is not None:
            watch.weights, watch.versions = own.weights, None
        self._optimizers.trained(own.optimizer, own.rates)
        watch.close(own.facts)

    def _look_up(self, own: _Calls) -> None:
        """Look up what rarely changes from update to update."""
        executor = own.executor
        session, optimizer = executor.session, self._optimizer_of(executor)
        stamp = (*map(id, (session, executor.plan, executor.modes, optimizer)), session.tier, own.line)
        if own.plan is not None and stamp == own.stamp:
            return
        own.stamp = stamp
        if own.modes is not executor.modes:
            # The modes of a program are those of its capture.
            own.modes = executor.modes
            own.is_in_eval_mode = ModeCheck(executor.module).is_in_eval_mode(executor.modes)
        if own.session is not session:
            own.types = program_types(session.captured)
        own.session, own.plan, own.rates = session, executor.plan, _rates(executor.plan)
        own.share = session.schedule.updates
        own.reseeds = session.captured.draws_random_numbers
        own.exchanges = executor.peers is not None
        if session.state is not None and executor.pipeline_group is None:
            own.weights = _TrainedWeights(executor, session)
        own.optimizer = None if optimizer is None else self._optimizers.known(optimizer)
        own.facts = {
            "mode": "program",
            "tier": session.tier.value,
            "device": session.device,
            **own.types,
            "wrapper": self.wrapper_of(executor),
            "works": True,
            "line": own.line,
            "rates": own.rates,
            "optimizer": None if own.optimizer is None else own.optimizer.number,
        }
        if own.is_in_eval_mode:
            own.facts |= {"in_eval_mode": True, "eval_line": self._modules.eval_line(executor.module)}

    def given(self, executor: Executor, optimizer: torch.optim.Optimizer | None) -> None:
        """An executor trains with this optimizer from now on."""
        if optimizer is not None:
            self._given[id(executor)] = optimizer
            if _OWN in executor.__dict__:
                executor.__dict__[_OWN].plan = None

    def _optimizer_of(self, executor: Executor) -> torch.optim.Optimizer | None:
        followed = executor.host_steps.optimizer
        return followed if followed is not None else self._given.get(id(executor))

    # What a program is

    def _anchored(self, original: Callable[[Program, Sequence[str]], Program]) -> Callable[..., Program]:
        def anchored(program: Program, names: Sequence[str]) -> Program:
            made = original(program, names)
            first = next(iter(program.computations.values()))
            if program.plan is None or first.graph is None or program.gradients:
                return made
            from pilotage.program.graphs.labels import labels_of

            if not any(_HIDDEN in labels_of(node) for node in first.graph.graph.nodes):
                return made
            return original(program, (*names, _HIDDEN))

        return anchored

    def _labelled(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def label(tensor: Tensor, name: str) -> None:
            original(tensor, name)
            own = self._call
            if own is not None and name == _HIDDEN and type(tensor) is Tensor and own.executor.is_compiled:
                self._watch.pending.losses.append(mean_loss(tensor))

        return label

    def _describe(self, executor: Executor, call: BoundCall, line: str | None) -> None:
        """Write once what a program is, and look at its forward pass."""
        from pilotage.capture.model import findings_of

        session, batching = executor.session, executor.execution.batching
        dropped = next((each.dropped_work for each in findings_of(session.captured)), None)
        self._watch.note(
            "program",
            line=line,
            device=session.device,
            tier=session.tier.value,
            device_iterations=batching.device_iterations,
            gradient_accumulation=batching.gradient_accumulation,
            replicas=batching.replicas,
            instances=batching.instances,
            reduction=executor.execution.reduction.value,
            outputs=str(executor.execution.outputs),
            computed_in=program_types(session.captured)["computed_in"],
            draws_random_numbers=session.captured.draws_random_numbers,
            dropped=None if dropped is None else {"loss": dropped.loss, "operation": dropped.operation},
        )
        if not self._split.is_done:
            self._split.is_done = True
            self._look_at_split(executor, call)

    def _look_at_split(self, executor: Executor, call: BoundCall) -> None:
        """Run forward of a copy once, on the first micro-batch, to see whether the loss depends on the split."""
        from pilotage.program.structure import unflatten
        from pilotage.runtime.call import first_micro_batch

        try:
            inputs = [each.clone() for each in first_micro_batch(call, executor.session.program.inputs)]
            positional, named = unflatten(executor.session.program.arguments, inputs)
            module = copy.deepcopy(executor.module)
            self._watch.is_in_program = True
            with torch.random.fork_rng(devices=[]), ForwardRecord() as record:
                value = module(*positional, **named)
        except Exception as error:
            self._watch.note("split", line=None, problem=f"{type(error).__name__}: {error}"[:200], root=None)
            return
        finally:
            self._watch.is_in_program = False
        from pilotage.proof.watching.digests import tensors_in

        scalars = [each for each in tensors_in(value) if _is_scalar(each)]
        trained = [each for each in scalars if each.requires_grad]
        if trained and record.is_complete:
            self._split.look_at(record, inputs, trained[-1], returned=scalars, module=module)


_HIDDEN = "loss"
_HIDDEN_LAST = (_HIDDEN,)
_OWN = "_proof_calls"
"""The attribute by which an executor keeps what is known about its calls."""


def _is_scalar(value: Tensor) -> bool:
    return value.numel() == 1 and value.is_floating_point()


def _share_of(loads: list[Load], number: int, updates: int) -> list[Load]:
    """The part of a call's batch that went into one of its updates."""
    if updates == 1 or not loads:
        return loads
    return [load.part(number, updates) for load in loads]


class _TrainedWeights:
    """The trained weights of a program by name, listed once for as long as they stay the same tensors."""

    def __init__(self, executor: Executor, session: Session) -> None:
        self._executor, self._session = executor, session
        self._state: object = None
        self._listed = NamedWeights()

    def __call__(self) -> NamedWeights:
        state = self._session.state
        if state is None or state is not self._state:
            self._state, self._listed = state, NamedWeights(_parameters(self._executor, self._session))
        return self._listed

    def let_go(self) -> None:
        """Keep no tensor of a program that leaves its device."""
        self._state, self._listed = None, NamedWeights()


def _parameters(executor: Executor, session: Session) -> Iterator[tuple[str, Tensor]]:
    names = set(session.program.layout.trained)
    # A program that has left its device has given its weights back to the module.
    held = dict(executor.module.named_parameters()) if session.state is None else session.whole_weights()
    return ((name, tensor) for name, tensor in held.items() if name in names)


def _rates(plan: OptimizerPlan | None) -> list[float]:
    groups = [] if plan is None else plan.groups
    return [float(group.values["lr"]) for group in groups if "lr" in group.values]
