"""A program on one device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from pilotage.devices.base import Backend
from pilotage.execution.host_memory import release_freed_memory
from pilotage.execution.state import DeviceState
from pilotage.execution.timing import CallTimes
from pilotage.execution.walk import Calls
from pilotage.optim.rule import OptimizerPlan
from pilotage.passes.returned_loss_check import with_returned_loss_check
from pilotage.passes.stage_placement import PlacedProgram
from pilotage.program.program import Action, Program
from pilotage.program.schedule import Schedule
from pilotage.strategies.strategy import Code, Setup, detached, inputs_of_steps

_ON_SEVERAL_CARDS = "its stages are on several cards but not a pipeline, and compiled code runs on one card"


class SingleDevice:
    """All replicas take turns on one device.

    Stages may be placed on several devices, which then work one after the other.
    """

    def __init__(
        self,
        program: Program,
        schedule: Schedule,
        backend: Backend,
        setup: Setup,
        placed: PlacedProgram | None = None,
        *,
        needs_graph: str = "",
        calls: Calls | None = None,
    ) -> None:
        self.program = program
        self.schedule = schedule
        self.state: DeviceState | None = None
        self._backend = backend
        self._setup = setup
        self._device = backend.capabilities.device
        placed = placed or PlacedProgram(program, {})
        self._placed = placed
        self._calls = calls
        self._placement = placed.state_devices
        """The devices of weights and buffers that are not on the first one."""
        self.devices = (self._device, *sorted({*placed.state_devices.values()} - {self._device}, key=str))
        self.needs_graph = _ON_SEVERAL_CARDS if placed.state_devices else needs_graph
        self.executable = backend.load(placed.program, schedule, setup.on_failure, calls)

    @property
    def times(self) -> CallTimes | None:
        """When the parts of the last call were done; None if only the device knows."""
        return self.executable.times

    @property
    def replicas(self) -> int:
        """How many replicas take turns."""
        return self._setup.replicas

    def attach(self, plan: OptimizerPlan | None) -> DeviceState:
        """Allocate the state; its weights are still to be loaded."""
        self.state = DeviceState(
            self.program.layout,
            plan,
            self._device,
            self._setup.replicas,
            Action.UPDATE in self.program.computations,
            self._placement,
            self._setup.exchange,
            optimizer_shards=self._setup.optimizer_shards,
            card_exchange=self._setup.card_exchange,
        )
        return self.state

    def share(self, other: SingleDevice) -> None:
        """Run on the state of another program of the same model from now on."""
        self.state = other.state

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run the whole schedule on inputs of the host and return the outputs there."""
        if self.state is None:
            raise detached()
        return self.executable.run(self.state, self._setup.streams, inputs)

    def with_schedule(self, schedule: Schedule) -> SingleDevice:
        """The same program on the same state, with another schedule."""
        other = SingleDevice(
            self.program,
            schedule,
            self._backend,
            self._setup,
            self._placed,
            needs_graph=self.needs_graph,
            calls=self._calls,
        )
        other.state = self.state
        return other

    def weights(self) -> Mapping[str, Tensor]:
        """All weights and buffers."""
        if self.state is None:
            raise detached()
        return {**self.state.parameters, **self.state.buffers()}

    def programs_to_compile(self, captured: Program) -> Sequence[Program]:
        """The whole program."""
        return [with_returned_loss_check(captured)]

    def inputs_to_compile(self, number: int, micro_batch: Sequence[Tensor]) -> dict[Action, Sequence[Tensor]]:
        """A micro-batch for each action that takes one."""
        return inputs_of_steps(self.schedule, micro_batch)

    def replace(self, program: Program, codes: Sequence[Code | None]) -> None:
        """Run another form of the program from now on, by compiled code if it is given."""
        (code,) = codes
        self.program, self._calls = program, None if code is None else code(self._device)
        self._placed = PlacedProgram(program, {})
        self.executable = self._backend.load(program, self.schedule, self._setup.on_failure, self._calls)

    def detach(self) -> None:
        """Free the state."""
        self.state = None
        if self._device.type == "cpu":
            release_freed_memory()
