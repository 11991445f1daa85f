"""Intel Gaudi, through the vendor's PyTorch bridge.

This path has been run on no Gaudi card yet; where the bridge is missing the backend says so and is never chosen.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence

import torch
from torch import Tensor

from pilotage.backends.base import Executable
from pilotage.backends.state import DeviceState
from pilotage.backends.streams import RandomStreams
from pilotage.backends.walk import Calls, Forgive, WalkedExecutable
from pilotage.options.choices import Tier
from pilotage.program.program import Program
from pilotage.program.schedule import Schedule

_BRIDGE = "habana_frameworks.torch.core"
_EMULATION = "habana_frameworks._emulation"


class HpuBackend:
    """Runs programs on a Gaudi card."""

    name = "hpu"
    device = torch.device("hpu")
    devices = (device,)
    tiers = (Tier.GRAPH, Tier.EAGER)
    computes_in_threads = False
    patience = float("inf")
    stops_at_losses = False

    def problem(self) -> str | None:
        """Why it cannot be used on this machine; None if it can."""
        # Looked for first: finding the bridge of a drop-in would start its emulated device.
        if _is_importable(_EMULATION):
            return "habana_frameworks is the drop-in that emulates the card on the CPU"
        # The vendor's media loader alone also creates a package habana_frameworks, without the bridge.
        if not _is_importable(_BRIDGE):
            return "habana_frameworks.torch is not installed"
        importlib.import_module(_BRIDGE)
        is_there = torch.get_device_module("hpu").is_available()
        return None if is_there else "no Gaudi device answers"

    def load(self, program: Program, schedule: Schedule, forgive: Forgive, calls: Calls | None = None) -> Executable:
        """Make a program ready to run."""
        return _MarkedExecutable(WalkedExecutable(program, schedule, forgive, calls))


class _MarkedExecutable:
    """Ends each call with a mark, which makes the bridge's lazy mode run what it has gathered."""

    def __init__(self, walked: WalkedExecutable) -> None:
        self._walked = walked
        self._mark = importlib.import_module(_BRIDGE).mark_step

    def run(self, state: DeviceState, streams: RandomStreams, inputs: Sequence[Tensor]) -> list[Tensor]:
        outputs = self._walked.run(state, streams, inputs)
        self._mark()
        return outputs


def _is_importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False
