"""run.compute_mode=HPU: Gaudi, using only Habana's documented interface."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pilotage
from cosmictagger.configuration.root import Configuration
from cosmictagger.devices.torch_device import TorchDevice
from cosmictagger.errors import DeviceError
from pilotage import World

if TYPE_CHECKING:
    from cosmictagger.devices.executor import Executor
    from cosmictagger.processes.process_group import Processes


LOG_LEVEL = "TORCH_CPP_LOG_LEVEL"


class GaudiDevice(TorchDevice):
    """A Gaudi card, real or emulated."""

    def environment(self, config: Configuration) -> dict[str, str]:
        """Habana's package reads its execution mode when it is imported, and torch the level of its C++ log."""
        mode = {"PT_HPU_LAZY_MODE": "1" if config.run.lazy_mode else "0"}
        if pilotage.world_here().size == 1:
            return mode
        # Otherwise each process ends with warnings about hooks and timers that only CUDA's backend has.
        return mode | {LOG_LEVEL: os.environ.get(LOG_LEVEL, "ERROR")}

    def exchange(self, world: World) -> tuple[str, str]:
        """HCCL exchanges gradients."""
        # Habana's library finds its card by these variables, which mpirun does not set.
        os.environ["ID"] = os.environ["LOCAL_RANK"] = str(world.local_rank)
        import habana_frameworks.torch.distributed.hccl  # noqa: F401

        return "hpu", "hccl"

    def executor(self, config: Configuration, processes: Processes | None = None) -> Executor:
        """Execute eagerly, or as lazy graphs that end at each ``mark_step``."""
        import torch

        from cosmictagger.devices.eager import eager_executor

        try:
            import habana_frameworks.torch.core as htcore
        except ImportError as error:
            raise DeviceError(f"run.compute_mode=HPU is not available: {error}") from None
        hpu = torch.get_device_module("hpu")
        if not hpu.is_available():
            raise DeviceError(
                "run.compute_mode=HPU is not available: habana_frameworks finds no card. Use run.compute_mode=CPU."
            )
        device, name = torch.device("hpu"), hpu.get_device_name()
        return eager_executor(config, device, processes, boundary=htcore.mark_step, name=name)
