"""The processor of this machine."""

from __future__ import annotations

import torch

from pilotage.devices.base import Executable
from pilotage.execution.walk import Calls, Forgive, WalkedExecutable
from pilotage.options.choices import Tier
from pilotage.passes.direct_gradients import with_direct_gradients
from pilotage.program.program import Program
from pilotage.program.schedule import Schedule


class CpuBackend:
    """Runs programs on the CPU."""

    name = "cpu"
    device = torch.device("cpu")
    label = str(device)
    devices = (device,)
    tiers = (Tier.GRAPH, Tier.COMPILED, Tier.EAGER)
    computes_in_threads = True
    has_own_memory = False
    patience = 60.0
    stops_at_losses = True

    def reservation(self) -> str | None:
        """Why it is taken only where it is asked for; None if it may be taken unasked."""
        return None

    def problem(self) -> str | None:
        """Why it cannot be used on this machine; None if it can."""
        return None

    def load(self, program: Program, schedule: Schedule, forgive: Forgive, calls: Calls | None = None) -> Executable:
        """Make a program ready to run."""
        if calls is None:
            program = with_direct_gradients(program, schedule)
        return WalkedExecutable(program, schedule, forgive, calls)
