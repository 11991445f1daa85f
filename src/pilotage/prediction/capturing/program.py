"""Captures the program that a kind of device would run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext

import torch
from torch.fx import GraphModule

from pilotage.capture import tracing
from pilotage.capture.steps import UpdateStep
from pilotage.devices.base import Capabilities, Executable
from pilotage.devices.registry import Choice
from pilotage.events import Event
from pilotage.execution.walk import Calls, OnFailure, StepFailure
from pilotage.options.choices import Tier
from pilotage.prediction.capturing.card_functions import as_on_a_card
from pilotage.prediction.devices.model import Kind
from pilotage.prediction.replacing import replaced
from pilotage.prediction.subject import Subject
from pilotage.prediction.trace.modules import naming_modules
from pilotage.program.program import Program
from pilotage.program.schedule import Schedule
from pilotage.runtime.compilation import Compilation
from pilotage.torch_private import FakeTensorMode
from pilotage.turns import PROCESS_WIDE

__all__ = ["captured_for", "captured_update", "capturing_in"]

_DEVICE = torch.device("cpu")
"""The device that tensors without values report: other devices need a torch that was built for them."""


def captured_for(subject: Subject, kind: Kind) -> Program:
    """The program that a kind of device would run; works without values and without such a device."""
    compilation = Compilation(
        module=subject.module,
        modes=subject.modes,
        plan=subject.plan,
        execution=subject.execution,
        replica_groups=subject.replica_groups,
        parsers=subject.parsers,
        tell=_ignore,
        on_failure=_never,
        sample=list,
    )
    choice = Choice(_ModelBackend(kind), Tier.GRAPH, "a prediction")
    with ExitStack() as stack:
        stack.enter_context(naming_modules(subject.module))
        stack.enter_context(as_on_a_card() if kind == "card" else nullcontext())
        stack.enter_context(torch.enable_grad())
        if subject.around_forward is not None:
            stack.enter_context(subject.around_forward(subject.module))
        stack.enter_context(_no_collections())
        return compilation.captured_again(choice, subject.arguments, subject.micro_batch)


def captured_update(step: UpdateStep) -> GraphModule:
    """The graph of an update without forward."""
    state = [spec for section in step.sections for spec in step.layout.section(section, whole=True)]
    with PROCESS_WIDE, _no_collections():
        return tracing.trace(step, state, _DEVICE, None).graph


@contextmanager
def _no_collections() -> Iterator[None]:
    """Pause Python's garbage collector, which takes a tenth of a capture, because it creates many lasting objects."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def capturing_in(mode: FakeTensorMode) -> Iterator[None]:
    """Capture in the mode that the tensors of a module without values have; torch does not mix modes."""
    with replaced(tracing, "FakeTensorMode", lambda **settings: mode):
        yield


class _ModelBackend:
    """A device that only exists as a model."""

    def __init__(self, kind: Kind) -> None:
        self.capabilities = Capabilities(
            name=kind,
            device=_DEVICE,
            label=f"a model of a {kind}",
            devices=(_DEVICE,),
            tiers=(Tier.GRAPH,),
            stops_at_losses=False,
            computes_in_threads=False,
            has_own_memory=True,
            seconds_before_compiling=0.0,
        )

    def problem(self, *, asked: bool = True) -> str | None:
        """A model of a device runs nothing."""
        return "it is a model of a device"

    def load(
        self, program: Program, schedule: Schedule, on_failure: OnFailure, calls: Calls | None = None
    ) -> Executable:
        """Refuse: a model of a device runs nothing."""
        raise NotImplementedError("a model of a device runs nothing")


def _ignore(event: Event) -> None:
    """Warnings belong to a run."""


def _never(failure: StepFailure, error: Exception) -> bool:
    return False
