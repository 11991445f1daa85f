"""NVIDIA cards."""

from __future__ import annotations

import torch

from pilotage.devices.base import Capabilities, Executable
from pilotage.distributed.own_card import take_own_card
from pilotage.execution.cuda_graph import CudaGraphExecutable, can_be_recorded
from pilotage.execution.walk import Calls, OnFailure, WalkedExecutable
from pilotage.options.choices import Tier
from pilotage.program.program import Program
from pilotage.program.schedule import Schedule

_DEVICE = torch.device("cuda", 0)


class CudaBackend:
    """Runs programs on an NVIDIA card."""

    @property
    def capabilities(self) -> Capabilities:
        """What the cards that torch sees can do."""
        return Capabilities(
            name="cuda",
            device=_DEVICE,
            label=str(_DEVICE),
            devices=tuple(torch.device("cuda", number) for number in range(torch.cuda.device_count())),
            tiers=(Tier.GRAPH, Tier.COMPILED, Tier.EAGER),
            stops_at_losses=False,
            computes_in_threads=False,
            has_own_memory=True,
            seconds_before_compiling=0.0,
        )

    def problem(self, *, asked: bool = True) -> str | None:
        """Why no card can be used on this machine; None if one can."""
        if torch.version.cuda is None:
            return f"torch {torch.__version__} is built without CUDA"
        if not torch.cuda.is_initialized():
            take_own_card()
        return None if torch.cuda.is_available() else "no CUDA device is available"

    def load(
        self, program: Program, schedule: Schedule, on_failure: OnFailure, calls: Calls | None = None
    ) -> Executable:
        """Make a program ready to run."""
        walked = WalkedExecutable(program, schedule, on_failure, calls)
        if not all(can_be_recorded(computation, _DEVICE) for computation in program.computations.values()):
            return walked
        return CudaGraphExecutable(walked, program, schedule)
