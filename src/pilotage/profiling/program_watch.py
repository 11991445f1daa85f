"""Programs of the engine in a profiled script: their calls, and a look at their operations."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from pilotage.proof.watching.patching import replace_function

if TYPE_CHECKING:
    from pilotage.execution.state import DeviceState
    from pilotage.profiling.graph_look import ProgramLook
    from pilotage.profiling.subject import Facts
    from pilotage.profiling.watch import ScriptWatch
    from pilotage.runtime.call import BoundCall
    from pilotage.runtime.executor import Executor
    from pilotage.runtime.session import Session
    from pilotage.strategies.strategy import Strategy

__all__ = ["ProgramWatch"]


class ProgramWatch:
    """Follows the programs of this process."""

    def __init__(self, watch: ScriptWatch) -> None:
        self._watch = watch
        self._looks: dict[int, tuple[Session, ProgramLook]] = {}
        """Each session with its look, by the address of the session, which stays alive here."""
        self._present: Executor | None = None

    def follow_executor(self, module: ModuleType) -> None:
        """`pilotage.runtime.executor` was imported."""
        replace_function(module.Executor, "run", self._run)
        replace_function(module.Executor, "compile_for", self._compile)

    def follow_session(self, module: ModuleType) -> None:
        """`pilotage.runtime.session` was imported."""
        replace_function(module.Session, "run", self._run_session)

    def _compile(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compile_for(executor: Executor, call: BoundCall) -> Any:
            from pilotage.prediction.trace.modules import naming_modules

            with self._inside(executor), naming_modules(_model(executor)), self._watch.timeline.activity("compile"):
                return original(executor, call)

        return compile_for

    def _run(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run(executor: Executor, call: BoundCall) -> Any:
            if self._present is not None:
                return original(executor, call)
            known = self._watch.subject_of(executor)
            tracing = self._watch.tracing(known)
            start = time.perf_counter()
            with self._inside(executor), self._watch.timeline.activity("call"), tracing:
                outputs = original(executor, call)
                self._watch.wait()
            end = time.perf_counter()
            session = executor.session
            subject = known or self._watch.new_subject(executor, lambda: _facts(executor, session))
            if id(session) in self._looks:
                subject.table = self._looks[id(session)][1].table
            subject.can_look = _state_to_look_at(session) is not None
            self._watch.updated(subject, start, end, max(1, session.schedule.updates))
            return outputs

        return run

    def _run_session(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run(session: Session, inputs: Sequence[Tensor], strategy: Strategy | ProgramLook | None = None) -> Any:
            if strategy is None and self._present is not None:
                strategy = self._look(session)
            return original(session, inputs, strategy)

        return run

    def _look(self, session: Session) -> ProgramLook | None:
        """A strategy that runs the next call with a clock around each operation, if that is due."""
        from pilotage.profiling.graph_look import ProgramLook
        from pilotage.profiling.subject import Stage

        assert self._present is not None
        subject = self._watch.subject_of(self._present)
        if subject is None or subject.stage is not Stage.LOOKING:
            return None
        if id(session) not in self._looks:
            state = _state_to_look_at(session)
            if state is None:
                return None
            prefix = "" if _model(self._present) is self._present.module else "module."
            look = ProgramLook(session.program, session.schedule, state, session.streams, prefix)
            self._looks[id(session)] = (session, look)
        return self._looks[id(session)][1]

    @contextmanager
    def _inside(self, executor: Executor) -> Iterator[None]:
        outer, self._present = self._present, executor
        self._watch.is_in_program = True
        try:
            yield
        finally:
            self._present = outer
            self._watch.is_in_program = outer is not None


def _model(executor: Executor) -> nn.Module:
    """The user's model, without the wrapper that adds a loss to it."""
    from pilotage.door import WithLoss

    module = executor.module
    return module.module if isinstance(module, WithLoss) else module


def _state_to_look_at(session: Session) -> DeviceState | None:
    """The state of a program whose operations can be timed here: on one device, from its graphs; None for others."""
    from pilotage.strategies.single import SingleDevice

    strategy = session.strategy
    has_graphs = all(each.graph is not None for each in session.program.computations.values())
    return strategy.state if isinstance(strategy, SingleDevice) and len(strategy.devices) == 1 and has_graphs else None


def _facts(executor: Executor, session: Session) -> Facts:
    from pilotage.profiling.subject import Facts

    batching, program = executor.execution.batching, session.captured
    shapes = [each.shape for each in program.inputs if each.shape]
    micro_batch = int(shapes[0][0]) if shapes else None
    per_update = session.schedule.micro_batches // max(1, session.schedule.updates)
    facts = Facts(
        name=type(_model(executor)).__name__,
        trains=program.trains,
        device=session.choice.capabilities.device,
        label=session.device,
        samples=None if micro_batch is None else micro_batch * per_update,
        micro_batch=micro_batch,
        device_iterations=batching.device_iterations,
        accumulation=batching.gradient_accumulation,
        replicas=batching.replicas,
        parameters=sum(each.numel() for each in executor.module.parameters()),
        precision=_precision([each.dtype for each in executor.module.parameters()], program.autocast),
        how=f"As a program of Pilotage in the tier {session.tier.value}",
    )
    if _state_to_look_at(session) is None:
        facts.notes.append(
            "Operations were not timed one by one: the program runs on several devices, or without graphs."
        )
    return facts


def _precision(types: Sequence[Any], autocast: Any) -> str:
    kinds = sorted({str(each).removeprefix("torch.") for each in types}) or ["float32"]
    text = " and ".join(kinds)
    return text if autocast is None else f"{text}, autocast to {str(autocast).removeprefix('torch.')}"
