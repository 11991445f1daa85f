"""NVIDIA cards."""

from __future__ import annotations

import torch

from pilotage.devices.base import Executable
from pilotage.distributed.own_card import take_own_card
from pilotage.execution.cuda_graph import CudaGraphExecutable, can_be_recorded
from pilotage.execution.walk import Calls, Forgive, WalkedExecutable
from pilotage.options.choices import Tier
from pilotage.program.program import Program
from pilotage.program.schedule import Schedule


class CudaBackend:
    """Runs programs on an NVIDIA card."""

    name = "cuda"
    device = torch.device("cuda", 0)
    label = str(device)
    tiers = (Tier.GRAPH, Tier.COMPILED, Tier.EAGER)
    computes_in_threads = False
    has_own_memory = True
    patience = 0.0
    stops_at_losses = False

    @property
    def devices(self) -> tuple[torch.device, ...]:
        """All cards, the one of ``device`` first."""
        return tuple(torch.device("cuda", number) for number in range(torch.cuda.device_count()))

    def reservation(self) -> str | None:
        """Why it is taken only where it is asked for; None if it may be taken unasked."""
        return None

    def problem(self) -> str | None:
        """Why it cannot be used on this machine; None if it can."""
        if torch.version.cuda is None:
            return f"torch {torch.__version__} is built without CUDA"
        if not torch.cuda.is_initialized():
            take_own_card()
        return None if torch.cuda.is_available() else "no CUDA device answers"

    def load(self, program: Program, schedule: Schedule, forgive: Forgive, calls: Calls | None = None) -> Executable:
        """Make a program ready to run."""
        walked = WalkedExecutable(program, schedule, forgive, calls)
        if not all(can_be_recorded(computation, self.device) for computation in program.computations.values()):
            return walked
        return CudaGraphExecutable(walked, program, schedule)
