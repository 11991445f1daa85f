"""What a backend is: one kind of device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.state import DeviceState
from pilotage.execution.timing import CallTimes
from pilotage.execution.walk import Calls, OnFailure
from pilotage.options.choices import Tier
from pilotage.program.program import Program
from pilotage.program.schedule import Schedule


class Executable(Protocol):
    """A program made ready for one device."""

    @property
    def times(self) -> CallTimes | None:
        """When the parts of the last call were done; None if only the device knows."""
        ...

    def run(self, state: DeviceState, streams: RandomStreams, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run one whole schedule on inputs of the host and return the outputs there; the state changes in place."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    """What a backend is called, and what it can do on this machine."""

    name: str
    """The name that PILOTAGE_BACKEND and the backend option use."""

    device: torch.device
    """Where state and computation live."""

    label: str
    """What logs and records call the device."""

    devices: tuple[torch.device, ...]
    """All devices that one program can use, ``device`` first."""

    tiers: tuple[Tier, ...]
    """What it can run, the default first."""

    stops_at_losses: bool
    """Whether a step can stop at a loss that is not finite, before anything is updated."""

    computes_in_threads: bool
    """Whether the number of torch's threads matters."""

    has_own_memory: bool
    """Whether the device's memory is separate from the host's."""

    seconds_before_compiling: float
    """How long a program has to run as a graph before compiling it pays."""


class Backend(Protocol):
    """One kind of device."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do; call `problem()` first."""
        ...

    def problem(self, *, asked: bool = True) -> str | None:
        """Why it cannot be used here or, unless it was requested by name, should not be; None if it can."""
        ...

    def load(
        self, program: Program, schedule: Schedule, on_failure: OnFailure, calls: Calls | None = None
    ) -> Executable:
        """Make a program ready to run, by its graphs or by compiled code; failed steps go to ``on_failure``."""
        ...
