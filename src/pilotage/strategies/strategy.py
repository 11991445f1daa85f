"""What a strategy is: where a program runs, and how it is spread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from pilotage.errors import AttachmentError
from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.spread_state import ProgramState
from pilotage.execution.state import CardExchange, Exchange
from pilotage.execution.timing import CallTimes
from pilotage.execution.walk import Calls, OnFailure
from pilotage.optim.rule import OptimizerPlan
from pilotage.options.choices import PipelineOrder
from pilotage.program.optimizer_shards import OptimizerShards
from pilotage.program.program import Action, Program
from pilotage.program.schedule import Schedule

Code = Callable[[torch.device], Calls]
"""Compiled code: the function for each action on a device."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What strategies need besides a program, its schedule and their devices."""

    replicas: int
    """How many replicas this process runs."""

    streams: RandomStreams
    on_failure: OnFailure
    exchange: Exchange | None = None
    """Sums gradients over all instances; None if there is only one."""

    card_exchange: CardExchange | None = None
    """How recordings contain this exchange."""

    optimizer_shards: OptimizerShards | None = None
    """Which instance updates which parameter; None if each updates all of them."""

    order: PipelineOrder | None = None
    """The requested order of a pipeline, if any."""

    stops_at_losses: bool = False
    """Whether a loss that is not finite prevents the update."""

    host_weights: Callable[[], Mapping[str, Tensor]] = dict
    """Returns the weights and buffers of the user's module, as far as they are needed before the state is there."""


class Strategy(Protocol):
    """A program made ready for its devices by the constructor, and its state there once it is attached.

    The strategy owns the state, so that program and state always match.
    """

    @property
    def program(self) -> Program:
        """The program in the form that runs."""
        ...

    @property
    def schedule(self) -> Schedule:
        """The steps of one call."""
        ...

    @property
    def devices(self) -> tuple[torch.device, ...]:
        """The devices that it uses; the program was captured for the first one."""
        ...

    @property
    def state(self) -> ProgramState | None:
        """The state on the devices; None while detached."""
        ...

    @property
    def needs_graph(self) -> str:
        """Why the program cannot run compiled code; empty if it can."""
        ...

    @property
    def times(self) -> CallTimes | None:
        """When the parts of the last call were done; None if only the devices know."""
        ...

    def attach(self, plan: OptimizerPlan | None) -> ProgramState:
        """Allocate the state; its weights are still to be loaded."""
        ...

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run the whole schedule on inputs of the host and return the outputs there; changes the state."""
        ...

    def with_schedule(self, schedule: Schedule) -> Strategy:
        """The same program on the same state, with another schedule; attach this one first."""
        ...

    def weights(self) -> Mapping[str, Tensor]:
        """All weights and buffers of the model. Collective if stages are processes: every process must call it."""
        ...

    def programs_to_compile(self, captured: Program) -> Sequence[Program]:
        """What the compiler gets: the captured program, or each stage of it that runs here, for the first device."""
        ...

    def inputs_to_compile(self, number: int, micro_batch: Sequence[Tensor]) -> dict[Action, Sequence[Tensor]]:
        """Samples of what the actions of one of these programs take after their state.

        Empty if a call has to come first.
        """
        ...

    def replace(self, program: Program, codes: Sequence[Code | None]) -> None:
        """Run another form of the program from now on.

        ``codes`` has the compiled code of each program to compile, or None for those that run their graphs.
        """
        ...

    def detach(self) -> None:
        """Free the state."""
        ...


def inputs_of_steps(schedule: Schedule, micro_batch: Sequence[Tensor]) -> dict[Action, Sequence[Tensor]]:
    """What the steps of a schedule take after their state."""
    actions = {step.action for step in schedule.steps if step.micro_batch is not None}
    return dict.fromkeys(actions, micro_batch)


def detached() -> AttachmentError:
    """The error for a program without state."""
    return AttachmentError("Device is not attached. Attach the model, or call it once.")
