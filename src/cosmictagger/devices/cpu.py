"""run.compute_mode=CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cosmictagger.configuration.root import Configuration
from cosmictagger.devices.torch_device import TorchDevice
from pilotage import World

if TYPE_CHECKING:
    from cosmictagger.devices.executor import Executor
    from cosmictagger.processes.process_group import Processes


class CpuDevice(TorchDevice):
    """The processor."""

    def exchange(self, world: World) -> tuple[str, str]:
        """Gloo exchanges gradients between processors."""
        return "cpu", "gloo"

    def executor(self, config: Configuration, processes: Processes | None = None) -> Executor:
        """Execute eagerly, which is faster here: kernels are long, and oneDNN gains nothing from a captured program."""
        import torch

        from cosmictagger.devices.eager import eager_executor

        return eager_executor(config, torch.device("cpu"), processes)
