"""The processor of this machine."""

from __future__ import annotations

import torch

from pilotage.devices.base import Capabilities, Executable
from pilotage.execution.host_memory import keep_freed_memory
from pilotage.execution.walk import Calls, OnFailure, WalkedExecutable
from pilotage.options.choices import Tier
from pilotage.passes.direct_gradients import with_direct_gradients
from pilotage.program.program import Program
from pilotage.program.schedule import Schedule

_DEVICE = torch.device("cpu")


class CpuBackend:
    """Runs programs on the CPU."""

    capabilities = Capabilities(
        name="cpu",
        device=_DEVICE,
        label=str(_DEVICE),
        devices=(_DEVICE,),
        tiers=(Tier.GRAPH, Tier.COMPILED, Tier.EAGER),
        stops_at_losses=True,
        computes_in_threads=True,
        has_own_memory=False,
        seconds_before_compiling=60.0,
    )

    def problem(self, *, asked: bool = True) -> str | None:
        """None: every machine has a processor."""
        return None

    def load(
        self, program: Program, schedule: Schedule, on_failure: OnFailure, calls: Calls | None = None
    ) -> Executable:
        """Make a program ready to run."""
        keep_freed_memory()
        if calls is None:
            program = with_direct_gradients(program, schedule)
        return WalkedExecutable(program, schedule, on_failure, calls)
