"""Intel Gaudi: through the vendor's PyTorch bridge, or on the drop-in that emulates the card.

The vendor's path has not been run on a Gaudi card yet. The emulation is used only if requested by name, and every log
line and record says so.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor
from torch.fx import GraphModule

from pilotage.devices.base import Capabilities, Executable
from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.state import DeviceState
from pilotage.execution.walk import Call, Calls, OnFailure, WalkedExecutable
from pilotage.options import environment
from pilotage.options.choices import Tier
from pilotage.program.program import Program
from pilotage.program.schedule import Schedule

_PACKAGE = "habana_frameworks.torch"
_BRIDGE = "habana_frameworks.torch.core"
_EMULATION = "habana_frameworks._emulation"
_COMPILER = "hpu_backend"
_DEVICE = torch.device("hpu")


class HpuBackend:
    """Runs programs on a Gaudi card, or on an emulated one."""

    @property
    def capabilities(self) -> Capabilities:
        """What the card can do, or the emulated one, whose label says so."""
        return Capabilities(
            name="hpu",
            device=_DEVICE,
            label=f"{_DEVICE} ({_device_name()})" if self._is_emulated else str(_DEVICE),
            devices=(_DEVICE,),
            tiers=(Tier.GRAPH, Tier.EAGER),
            stops_at_losses=False,
            computes_in_threads=False,
            has_own_memory=True,
            seconds_before_compiling=float("inf"),
        )

    def problem(self, *, asked: bool = True) -> str | None:
        """Why no card can be used on this machine; None if one can. The emulation has to be requested."""
        if not asked and self._is_emulated:
            # Before anything else: looking for other problems would start the emulated device.
            return "habana_frameworks is the drop-in that emulates the card"
        try:
            # The vendor's media loader also creates a package habana_frameworks, without the bridge.
            if not _is_found(_PACKAGE):
                return f"{_PACKAGE} is not installed"
            importlib.import_module(_BRIDGE)
        except ImportError as error:
            return f"{_PACKAGE} does not import ({error})"
        is_there = torch.get_device_module("hpu").is_available()
        return None if is_there else "no Gaudi device is available"

    def load(
        self, program: Program, schedule: Schedule, on_failure: OnFailure, calls: Calls | None = None
    ) -> Executable:
        """Make a program ready to run: by the bridge's compiler, or graph by graph if it is lazy or emulated."""
        if calls is None and not self._is_emulated and not environment.gaudi_is_lazy():
            calls = compiled_calls(program)
        return _MarkedExecutable(WalkedExecutable(program, schedule, on_failure, calls))

    @cached_property
    def _is_emulated(self) -> bool:
        try:
            return _is_found(_EMULATION)
        except ImportError:
            # The drop-in has made way for the vendor's own package.
            return False


def compiled_calls(program: Program) -> Calls | None:
    """Each graph of a program compiled by the bridge's backend of torch.compile; None in the eager tier."""
    graphs = {action: part.graph for action, part in program.computations.items() if part.graph is not None}
    return {action: _compiled(graph) for action, graph in graphs.items()} or None


def _compiled(graph: GraphModule) -> Call:
    compiled = torch.compile(graph, backend=_COMPILER, dynamic=False)

    def call(*arguments: Tensor) -> list[Tensor]:
        return list(compiled(*arguments))

    return call


class _MarkedExecutable:
    """Ends each call with ``mark_step()``, which makes the bridge's lazy mode run its recorded operations."""

    times = None
    """Only the card knows them."""

    def __init__(self, walked: WalkedExecutable) -> None:
        self._walked = walked
        self._mark = importlib.import_module(_BRIDGE).mark_step

    def run(self, state: DeviceState, streams: RandomStreams, inputs: Sequence[Tensor]) -> list[Tensor]:
        outputs = self._walked.run(state, streams, inputs)
        self._mark()
        return outputs


def _device_name() -> str:
    return str(torch.get_device_module("hpu").get_device_name())


def _is_found(module: str) -> bool:
    """Whether a module exists; only its parent packages are imported to find out."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
