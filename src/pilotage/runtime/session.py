"""A compiled program on its devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from pilotage.devices.registry import Choice
from pilotage.errors import AttachmentError, InputError, TornStateError
from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.spread_state import ProgramState
from pilotage.execution.synthetic_inputs import SyntheticInputs
from pilotage.execution.threads import ThreadTuner, using_threads
from pilotage.execution.timing import CallTimes
from pilotage.interrupts import INTERRUPTS
from pilotage.optim.rule import OptimizerPlan
from pilotage.options.choices import Accumulation, Tier
from pilotage.passes.channels_last import in_channels_last
from pilotage.passes.returned_loss_check import with_returned_loss_check
from pilotage.program.layout import Slot
from pilotage.program.precision import accumulating_in, autocast_type, without_autocast
from pilotage.program.program import Program
from pilotage.program.schedule import Schedule
from pilotage.program.structure import Structure, rebuilder, unflatten
from pilotage.runtime.instances.common_switch import CommonSwitch
from pilotage.runtime.optimizer_state import OptimizerState as OptimizerState
from pilotage.runtime.tiers.stages import Compiled, Rising
from pilotage.strategies.strategy import Strategy, detached
from pilotage.turns import PROCESS_WIDE

Slots = dict[tuple[str, str], Tensor]
"""What an optimizer keeps, by name of the slot and of the parameter."""


@dataclass(kw_only=True)
class Session:
    """A compiled program with its strategy, from compilation until it is destroyed.

    Large because calls, checkpoints, files and reports all ask it about the program that runs.
    """

    choice: Choice
    captured: Program
    """The program as it was captured."""

    strategy: Strategy
    """Where the program runs; owns its state."""

    streams: RandomStreams
    gather: Callable[[Slots], list[Slots]] | None = None
    """Collects the optimizer's state of all processes that have a part of it; None if this process has all of it."""

    accumulation: Accumulation | None = None
    """How half-precision products are summed."""

    synthetic: SyntheticInputs | None = None
    """What the program runs on instead of the host's inputs, if requested."""

    kept_optimizer: OptimizerState | None = None
    """The optimizer's state while the program is detached."""

    entry: Compiled | None = None
    """The compiled code that runs, or the result of the search for it."""

    threads: ThreadTuner | None = None
    """Finds the best number of threads; None if it must not be changed."""

    ascent: Rising | None = None
    """The pending switch to compiled code, if any."""

    common_switch: CommonSwitch | None = None
    """Finds the update after which all instances switch to compiled code; None if this is the only one."""

    why_not_compiled: str = ""
    """Why the program cannot be compiled; instances report it to each other."""

    tier: Tier = field(init=False)
    """How the program is executed at present."""

    def __post_init__(self) -> None:
        self.tier = Tier.EAGER if self.choice.tier is Tier.EAGER else Tier.GRAPH

    @property
    def program(self) -> Program:
        """The program in the form that runs."""
        return self.strategy.program

    @property
    def schedule(self) -> Schedule:
        """The steps of one call."""
        return self.strategy.schedule

    @cached_property
    def device(self) -> str:
        """The device by name, or all of them."""
        others = sorted(map(str, {*self.strategy.devices} - {self.choice.capabilities.device}))
        return ", ".join([self.choice.capabilities.label, *others])

    @property
    def state(self) -> ProgramState | None:
        """The state on the devices; None while the program is detached."""
        return self.strategy.state

    @property
    def attached(self) -> ProgramState:
        """The state on the devices; raises while the program is detached."""
        if self.strategy.state is None:
            raise detached()
        return self.strategy.state

    @property
    def whole_weights(self) -> Callable[[], Mapping[str, Tensor]]:
        """Returns all weights and buffers. Collective where stages are processes: every process must call it."""
        return self.strategy.weights

    @property
    def outputs(self) -> Structure:
        """How the outputs are nested; in the eager tier, how those of the last run were."""
        program = self.strategy.program
        structure = program.outputs
        if structure is None:
            first = next(iter(program.computations.values())).function
            structure = first.findings.outputs if first is not None else None
        assert structure is not None
        return structure

    @property
    def rebuild(self) -> Callable[[list[Tensor]], Any]:
        """Arranges the outputs of a call as forward returns them."""
        outputs = self.captured.outputs
        # The eager tier runs forward at each call, which may return something else each time.
        return partial(_rebuilt_as_last, self) if outputs is None else rebuilder(outputs)

    @property
    def times(self) -> CallTimes | None:
        """When the parts of the last call were done; None if only the devices know."""
        return self.strategy.times

    def attach(self, plan: OptimizerPlan | None) -> None:
        """Allocate the state on the devices; weights are still to be loaded."""
        if self.strategy.state is not None:
            raise AttachmentError("Device is already attached. Detach it first.")
        state = self.strategy.attach(plan)
        if self.kept_optimizer is not None:
            self.kept_optimizer.load_into(state)

    def detach(self) -> None:
        """Copy the optimizer's state to the host and free the devices."""
        self.kept_optimizer = self.optimizer_state()
        self.strategy.detach()

    # Running

    def run(self, inputs: Sequence[Tensor], strategy: Strategy | None = None) -> list[Tensor]:
        """Run one call on inputs that are on the host, by another strategy with the same state if one is given."""
        strategy = strategy or self.strategy
        if self.synthetic is not None:
            inputs = self.synthetic.instead_of(inputs, self.choice.capabilities.device)
        program = self.strategy.program
        is_plain = not program.draws_random_numbers and (not program.written_buffers or program.trains)
        has_threads = self.threads is None or self._present_threads(self.threads) == torch.get_num_threads()
        if is_plain and has_threads and self.accumulation is None and not torch.is_autocast_enabled(self._device_type):
            return strategy.run(inputs)
        with ExitStack() as stack:
            for each in self._settings(program):
                stack.enter_context(each)
            return strategy.run(inputs)

    def _settings(self, program: Program) -> list[AbstractContextManager[object]]:
        """The contexts in which a call runs."""
        found: list[AbstractContextManager[object]] = []
        if program.draws_random_numbers:
            # Torch's generators belong to the process, and so do the tables of a module that the eager tier runs.
            found.append(PROCESS_WIDE)
        elif program.written_buffers and not program.trains:
            found.append(INTERRUPTS)
        # A captured graph has its casts built in; the eager tier's Python still needs autocast.
        if torch.is_autocast_enabled(self._device_type) and self.tier is not Tier.EAGER:
            found.append(without_autocast(self._device_type))
        if self.accumulation is not None:
            found.append(accumulating_in(self.accumulation))
        if self.threads is not None and (count := self._present_threads(self.threads)) != torch.get_num_threads():
            found.append(using_threads(count))
        return found

    def _present_threads(self, tuner: ThreadTuner) -> int:
        """Leave a core to a compiler that runs beside the program: threads that wait for a core delay all others."""
        if self.ascent is None or not self.ascent.is_compiling:
            return tuner.present
        return max(1, min(tuner.present, self.ascent.cores - 1))

    @cached_property
    def _device_type(self) -> str:
        return self.choice.capabilities.device.type

    def tune_threads(self, seconds: float) -> None:
        """Pass the duration of a call to the thread tuner, unless a compiler has run beside it."""
        if self.threads is not None and not (self.ascent is not None and self.ascent.is_compiling):
            self.threads.note(seconds)

    def refuse_torn(self) -> None:
        """Raise if an update was interrupted and the state that it was changing was not loaded again."""
        if self.strategy.state is not None and (torn := self.strategy.state.torn):
            raise TornStateError(
                f"A call was interrupted during an update, and {' and '.join(sorted(torn))} on the device may "
                "be half old and half new. Restore a checkpoint, or load weights and the state of the optimizer, or "
                "destroy() the model."
            )

    def check_call(self) -> None:
        """Raise after an interrupted update, and for a call under another autocast than the capture."""
        program, state = self.strategy.program, self.strategy.state
        captured = program.autocast
        # Most calls are made without autocast, as they were captured.
        if captured is not None or torch.is_autocast_enabled(self._device_type):
            present = autocast_type(self._device_type)
            if captured != present:
                raise InputError(
                    f"The program was captured {_under(captured)}, and this call is made {_under(present)}. Make all "
                    "calls under the same autocast, or use it inside forward."
                )
        if state is not None and state.torn and program.trains:
            self.refuse_torn()

    # Changing the tier

    def fits_layout_of(self, entry: Compiled) -> bool:
        """Whether the state has the memory layout that compiled code needs."""
        present = self.entry is not None and self.entry.tuning.channels_last
        return present == entry.tuning.channels_last

    def next_code(self, seconds: float, sample: Callable[[], Sequence[Tensor]]) -> Compiled | None:
        """Compiled code to use after a call of this duration, if it is ready; ``sample`` returns a micro-batch."""
        entry: Compiled | None = None
        if self.ascent is not None and self.ascent.is_due(seconds):
            state = self.attached
            entry = self.ascent.advance(lambda number: self.strategy.inputs_to_compile(number, sample()), state.buffers)
            if entry is None and self.ascent.is_over and self.common_switch is None:
                self.stop_ascent()
        if self.common_switch is not None and self.common_switch.is_time():
            entry = self.common_switch.meet(self.ascent, self.why_not_compiled, seconds)
        return entry

    def use(self, entry: Compiled) -> None:
        """Run the fastest code found from now on; detach first if the state needs another memory layout."""
        if self.ascent is not None and not self.ascent.is_compiling:
            self.stop_ascent()
        tuning = entry.tuning
        form = with_returned_loss_check(self.captured) if tuning.tier is Tier.COMPILED else self.captured
        program = in_channels_last(form) if tuning.channels_last else form
        self.strategy.replace(program, entry.codes)
        if self.strategy.state is not None:
            # Graphs may leave gradients of the last update in the pools and overwrite them; compiled code adds to them.
            self.strategy.state.forget_gradients()
        self.entry, self.tier = entry, tuning.tier
        if self.threads is not None:
            self.threads.forget_speed()

    def stop_ascent(self) -> None:
        """Stop the compiler."""
        if self.ascent is not None:
            self.ascent.stop()
            self.ascent = None

    # The optimizer's state

    def optimizer_state(self) -> OptimizerState | None:
        """A copy of the optimizer's state on the host, as far as this process has it."""
        if not self.program.trains or self.strategy.state is None:
            return self.kept_optimizer
        self.refuse_torn()
        return OptimizerState.of(self.strategy.state)

    def whole_optimizer_state(self) -> OptimizerState | None:
        """The optimizer's state of all processes. Collective if it is divided: every process must call it."""
        state = self.optimizer_state()
        if state is None or self.gather is None:
            return state
        everyone = self.gather({(slot.name, slot.parameter): tensor for slot, tensor in state.slots.items()})
        return replace(state, slots={Slot(*names): tensor for part in everyone for names, tensor in part.items()})

    def set_optimizer_state(self, state: OptimizerState) -> None:
        """Continue training from another state of the optimizer."""
        if self.strategy.state is None:
            self.kept_optimizer = state
        else:
            state.load_into(self.strategy.state)


def _rebuilt_as_last(session: Session, tensors: list[Tensor]) -> Any:
    return unflatten(session.outputs, tensors)


def _under(autocast: torch.dtype | None) -> str:
    return "without autocast" if autocast is None else f"under autocast to {autocast}"
