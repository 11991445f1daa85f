"""A compiled program, and its state on the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from pilotage.compiler.cache import Entry
from pilotage.devices.base import Executable
from pilotage.devices.registry import Choice
from pilotage.distributed.pipeline_group import Line
from pilotage.errors import AttachmentError, InputError, TornStateError
from pilotage.events import StepsRun
from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.state import OPTIMIZER, DeviceState, Exchange
from pilotage.execution.synthetic_inputs import SyntheticInputs
from pilotage.execution.threads import ThreadTuner, using_threads
from pilotage.execution.timing import CallTimes, Timed
from pilotage.execution.walk import Calls
from pilotage.interrupts import INTERRUPTS
from pilotage.optim.rule import OptimizerPlan
from pilotage.options.choices import Accumulation, Tier
from pilotage.passes.channels_last import in_channels_last
from pilotage.passes.cutting import StageProgram
from pilotage.passes.late_checks import with_late_checks
from pilotage.program.layout import Counter, Slot
from pilotage.program.optimizer_shards import Shares
from pilotage.program.precision import accumulating_in, autocast_type, without_autocast
from pilotage.program.program import Program
from pilotage.program.schedule import Schedule
from pilotage.program.structure import Structure
from pilotage.runtime.ascent import Ascent
from pilotage.runtime.whole_weights import whole_weights
from pilotage.turns import PROCESS_WIDE


@dataclass(frozen=True, kw_only=True)
class OptimizerState:
    """What an optimizer has learnt, on the host."""

    slots: dict[Slot, Tensor]
    updates: float
    loss_scale: float = 1.0
    """What automatic loss scaling has found."""


@dataclass(kw_only=True)
class Session:
    """Everything that exists between compiling a program and destroying it."""

    choice: Choice
    captured: Program
    """The program as it was captured."""

    program: Program
    """The program in the form that is run."""

    schedule: Schedule
    executable: Executable
    streams: RandomStreams
    replicas: int
    pools: bool
    """Whether gradients of several micro-batches are pooled."""

    exchange: Exchange | None = None
    """Adds up the gradients of all instances; None where there is one."""

    line: Line | None = None
    """The processes of the other stages; None where this one has all of them."""

    cut: StageProgram | None = None
    """What this process has of the captured program, where others have the rest."""

    cards: tuple[torch.device, ...] = ()
    """The cards that replicas are shared out to; none where all of them are on one."""

    room: Callable[[OptimizerPlan | None], DeviceState] | None = None
    """Makes room for state that several cards have copies or parts of; None where one device has it."""

    homes: Mapping[str, torch.device] = field(default_factory=dict)
    """The devices of weights and buffers that are not on the first one."""

    state: DeviceState | None = None
    """None while the program is detached from its device."""

    shares: Shares | None = None
    """What other instances update; None where each updates everything."""

    gather: Callable[[Any], list[Any]] | None = None
    """Brings together what each instance has; None where there is one."""

    accumulation: Accumulation | None = None
    """How half-precision products are summed up."""

    synthetic: SyntheticInputs | None = None
    """What the program runs on instead of the host's inputs, where it was asked for."""

    parked: OptimizerState | None = None
    """The optimizer's state while the program is detached."""

    tier: Tier
    """How the program is executed at present."""

    entry: Entry | None = None
    """The compiled code that is run, or what was found out in looking for it."""

    channels_last: bool = False
    """Whether weights of four dimensions are stored channels-last."""

    threads: ThreadTuner | None = None
    """How many threads compute, where that may be decided here."""

    ascent: Ascent | None = None
    """The way to compiled code, as long as it may be gone."""

    reload: Callable[[Program, Calls | None], Executable]
    """Makes another form of the program ready to run."""

    @cached_property
    def device(self) -> str:
        """The device by name, or all of them where the program is shared out."""
        others = sorted(map(str, {*self.homes.values(), *self.cards} - {self.choice.capabilities.device}))
        return ", ".join([self.choice.capabilities.label, *others])

    @property
    def attached(self) -> DeviceState:
        """The state on the device; raises while the program is detached."""
        if self.state is None:
            raise AttachmentError("Device is not attached. Attach the model, or call it once.")
        return self.state

    @property
    def outputs(self) -> Structure:
        """How the outputs are nested; in the eager tier, how those of the last run were."""
        structure = self.program.outputs
        if structure is None:
            first = next(iter(self.program.computations.values())).function
            structure = first.findings.outputs if first is not None else None
        assert structure is not None
        return structure

    def attach(self, plan: OptimizerPlan | None) -> DeviceState:
        """Make room on the device; weights are still to be loaded."""
        if self.state is not None:
            raise AttachmentError("Device is already attached. Detach it first.")
        self.state = self._state_on_device(plan) if self.room is None else self.room(plan)
        if self.parked is not None:
            self._load_optimizer(self.state, self.parked)
        return self.state

    def _state_on_device(self, plan: OptimizerPlan | None) -> DeviceState:
        return DeviceState(
            self.program.layout,
            plan,
            self.choice.capabilities.device,
            self.replicas,
            self.pools,
            self.homes,
            self.exchange,
            shares=self.shares,
        )

    @property
    def whole_weights(self) -> Callable[[], Mapping[str, Tensor]] | None:
        """Brings the weights of all stages together, where they are in several processes; all of them have to call it."""
        if self.line is None or self.cut is None:
            return None
        return partial(whole_weights, self.line, self.cut, self.captured.layout, self.attached)

    def detach(self) -> None:
        """Take the optimizer's state home and free the device."""
        self.parked = self.optimizer_state()
        self.state = None

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run one host call on inputs that are on the host."""
        if self.synthetic is not None:
            inputs = self.synthetic.instead_of(inputs, self.choice.capabilities.device)
        surroundings = self._surroundings()
        if not surroundings:
            return self.executable.run(self.attached, self.streams, inputs)
        with ExitStack() as stack:
            for each in surroundings:
                stack.enter_context(each)
            return self.executable.run(self.attached, self.streams, inputs)

    def refuse_torn(self) -> None:
        """Raise where an update was broken off, and what it was changing was not loaded again."""
        if self.state is not None and (torn := self.state.torn):
            raise TornStateError(
                f"A call was broken off in the middle of an update, and {' and '.join(sorted(torn))} on the device may be half old "
                "and half new. Restore a checkpoint, or load weights and the state of the optimizer, or destroy() the model."
            )

    @property
    def times(self) -> CallTimes | None:
        """When the parts of the last call were done; None where the executable cannot tell."""
        return self.executable.times if isinstance(self.executable, Timed) else None

    def steps_run(self, seconds: float) -> StepsRun:
        """What one call has done."""
        batches, updates = self.schedule.micro_batches, self.schedule.updates
        return StepsRun(
            device=self.device, tier=self.tier.value, micro_batches=batches, updates=updates, seconds=seconds
        )

    def note(self, seconds: float) -> None:
        """Told how long a call took."""
        if self.threads is not None and not self._is_compiling:
            self.threads.note(seconds)

    @property
    def _is_compiling(self) -> bool:
        return self.ascent is not None and self.ascent.is_compiling

    def _present_threads(self, tuner: ThreadTuner) -> int:
        """A compiler beside us gets a core of its own: threads that wait for a core hold all the others up."""
        if self.ascent is None or not self.ascent.is_compiling:
            return tuner.present
        return max(1, min(tuner.present, self.ascent.cores - 1))

    def is_at_home_in(self, entry: Entry) -> bool:
        """Whether the state already lies as compiled code wants it."""
        return self.channels_last == entry.tuning.channels_last

    def go_up(self, entry: Entry) -> None:
        """Run what was found to be fastest from now on; the program is detached where its state has to lie otherwise."""
        self.stop_ascent()
        tuning = entry.tuning
        captured, late = self.captured, with_late_checks(self.captured)
        form = late if tuning.tier is Tier.COMPILED else captured
        self.program = in_channels_last(form) if tuning.channels_last else form
        device = self.choice.capabilities.device
        calls = entry.code(device, self.program.computations) if tuning.tier is Tier.COMPILED else None
        self.executable = self.reload(self.program, calls)
        self.channels_last, self.tier = tuning.channels_last, tuning.tier
        self.entry = entry
        if self.threads is not None:
            self.threads.forget_speed()

    def stop_ascent(self) -> None:
        """Compile nothing any more."""
        if self.ascent is not None:
            self.ascent.stop()
            self.ascent = None

    def refuse_other_autocast(self) -> None:
        """Raise where a call is made under another automatic mixed precision than the capture."""
        captured, present = self.program.autocast, autocast_type(self._device_type)
        if captured != present:
            raise InputError(
                f"The program was captured {_under(captured)}, and this call is made {_under(present)}. Make all calls under "
                "the same autocast, or put it inside of forward."
            )

    def _surroundings(self) -> list[AbstractContextManager[object]]:
        """What has to be otherwise while a call runs; most often nothing, and then nothing is spent on it."""
        found: list[AbstractContextManager[object]] = []
        if self.program.draws_random_numbers:
            # Torch's generators are the process's, and so are the tables of a module that the eager tier runs.
            found.append(PROCESS_WIDE)
        elif self.program.written_buffers and not self.program.trains:
            found.append(INTERRUPTS)
        # A captured graph has its casts built in; the eager tier's Python still needs autocast.
        if self.tier is not Tier.EAGER and torch.is_autocast_enabled(self._device_type):
            found.append(without_autocast(self._device_type))
        if self.accumulation is not None:
            found.append(accumulating_in(self.accumulation))
        if self.threads is not None and (count := self._present_threads(self.threads)) != torch.get_num_threads():
            found.append(using_threads(count))
        return found

    @cached_property
    def _device_type(self) -> str:
        return self.choice.capabilities.device.type

    def optimizer_state(self) -> OptimizerState | None:
        """A copy of the optimizer's state on the host, as far as this instance has it."""
        if not self.program.trains or self.state is None:
            return self.parked
        self.refuse_torn()
        slots = {slot: tensor.to("cpu", copy=True) for slot, tensor in self.state.slots.items()}
        counters = {counter: float(number) for counter, number in self.state.counters.items()}
        return OptimizerState(
            slots=slots, updates=counters[Counter.UPDATES], loss_scale=counters.get(Counter.LOSS_SCALE, 1.0)
        )

    def whole_optimizer_state(self) -> OptimizerState | None:
        """The same with what other instances remember; where state is shared out, all of them have to ask for it."""
        state = self.optimizer_state()
        gather = self.line.gather if self.line is not None else (None if self.shares is None else self.gather)
        if state is None or gather is None:
            return state
        everyone = gather({(slot.name, slot.parameter): tensor for slot, tensor in state.slots.items()})
        return replace(state, slots={Slot(*names): tensor for part in everyone for names, tensor in part.items()})

    def set_optimizer_state(self, state: OptimizerState) -> None:
        """Let training go on from another state of the optimizer."""
        if self.state is None:
            self.parked = state
        else:
            self._load_optimizer(self.state, state)

    @staticmethod
    @torch.no_grad()
    def _load_optimizer(state: DeviceState, saved: OptimizerState) -> None:
        for slot, tensor in state.slots.items():
            if slot in saved.slots:
                tensor.copy_(saved.slots[slot])
        state.counters[Counter.UPDATES].fill_(saved.updates)
        if Counter.LOSS_SCALE in state.counters:
            state.counters[Counter.LOSS_SCALE].fill_(saved.loss_scale)
        state.hand_on()
        state.repair(OPTIMIZER)


def _under(autocast: torch.dtype | None) -> str:
    return "without autocast" if autocast is None else f"under autocast to {autocast}"
