"""run.compute_mode=CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cosmictagger.configuration.choices import Engine
from cosmictagger.configuration.framework import Torch
from cosmictagger.configuration.mode import Train
from cosmictagger.configuration.root import Configuration
from cosmictagger.devices.torch_device import TorchDevice
from pilotage import World

if TYPE_CHECKING:
    from cosmictagger.devices.executor import Executor
    from cosmictagger.processes.process_group import Processes

WORTH_CAPTURING = 60
"""Steps of a run from which on the time to capture a program can be earned back."""


class CpuDevice(TorchDevice):
    """The processor."""

    def exchange(self, world: World) -> tuple[str, str]:
        """Gloo exchanges gradients between processors."""
        return "cpu", "gloo"

    def executor(self, config: Configuration, processes: Processes | None = None) -> Executor:
        """Execute as ``framework.engine`` says; ``auto`` measures which way is faster."""
        from cosmictagger.devices.eager import eager_executor
        from cosmictagger.devices.engine import engine_executor
        from cosmictagger.devices.measured import MeasuredExecutor

        def plain(reason: str = "") -> Executor:
            import torch

            return eager_executor(config, torch.device("cpu"), processes, reason=reason)

        match config.framework.engine if isinstance(config.framework, Torch) else Engine.eager:
            case Engine.pilotage:
                return engine_executor(config, "cpu", processes, reason="framework.engine=pilotage")
            case Engine.eager:
                return plain("framework.engine=eager")
            case Engine.auto:
                reason = _against_a_program(config, processes)
                if reason is not None:
                    return plain(reason)
                return MeasuredExecutor(plain, lambda: engine_executor(config, "cpu", processes))


def _against_a_program(config: Configuration, processes: Processes | None) -> str | None:
    """Why the plain loop is chosen without measuring; None if both ways are to be measured."""
    from cosmictagger.devices.setup import reason_for_eager

    if not isinstance(config.mode, Train):
        return "evaluation gains nothing from a program"
    if processes is not None and processes.is_distributed:
        return "DistributedDataParallel exchanges gradients while others are computed"
    if (reason := reason_for_eager(config)) is not None:
        return reason
    if not config.run.run_length and config.run.iterations < WORTH_CAPTURING:
        return f"{config.run.iterations} steps are too few to earn back the time that capturing a program takes"
    return None
