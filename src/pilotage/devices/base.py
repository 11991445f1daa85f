"""What a backend is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.state import DeviceState
from pilotage.execution.walk import Calls, Forgive
from pilotage.options.choices import Tier
from pilotage.program.program import Program
from pilotage.program.schedule import Schedule


class Executable(Protocol):
    """A program compiled for one backend."""

    def run(self, state: DeviceState, streams: RandomStreams, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run one whole schedule on inputs of the host, and bring the outputs back; state is changed in place."""
        ...


class Backend(Protocol):
    """One kind of device."""

    @property
    def name(self) -> str:
        """What PILOTAGE_BACKEND calls it."""
        ...

    @property
    def device(self) -> torch.device:
        """Where state and computation live."""
        ...

    @property
    def label(self) -> str:
        """What the device is called in logs and records."""
        ...

    @property
    def devices(self) -> tuple[torch.device, ...]:
        """All devices that one program can use, the one of ``device`` first."""
        ...

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """What it can run, the default first."""
        ...

    @property
    def stops_at_losses(self) -> bool:
        """Whether a step can stop at a loss that is not finite, before anything is updated."""
        ...

    def reservation(self) -> str | None:
        """Why it is taken only where it is asked for; None if it may be taken unasked."""
        ...

    def problem(self) -> str | None:
        """Why it cannot be used on this machine; None if it can."""
        ...

    @property
    def computes_in_threads(self) -> bool:
        """Whether the number of torch's threads matters to it."""
        ...

    @property
    def has_own_memory(self) -> bool:
        """Whether what is on the device is not in the host's memory at the same time."""
        ...

    @property
    def patience(self) -> float:
        """After how many seconds of work it pays to compile a program beside it."""
        ...

    def load(self, program: Program, schedule: Schedule, forgive: Forgive, calls: Calls | None = None) -> Executable:
        """Make a program ready to run, with its graphs or with compiled code; failures of steps are told to ``forgive``."""
        ...
