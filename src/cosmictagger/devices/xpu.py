"""run.compute_mode=XPU: an Intel card."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pilotage
from cosmictagger.configuration.root import Configuration
from cosmictagger.configuration.run import Run
from cosmictagger.devices.torch_device import TorchDevice
from cosmictagger.errors import DeviceError
from pilotage import World

if TYPE_CHECKING:
    from cosmictagger.devices.executor import Executor
    from cosmictagger.processes.process_group import Processes


class XpuDevice(TorchDevice):
    """An Intel card."""

    def join(self, run: Run) -> Processes:
        """Choose this process's card, and connect to the other processes."""
        import torch

        world = pilotage.world_here()
        if run.distributed and world.size > 1:
            torch.xpu.set_device(world.local_rank % torch.xpu.device_count())
        return super().join(run)

    def exchange(self, world: World) -> tuple[str, str]:
        """oneCCL exchanges gradients, through torch's own backend or through Intel's package."""
        import torch.distributed as dist

        if dist.is_xccl_available():
            return "xpu", "xccl"
        try:
            import oneccl_bindings_for_pytorch  # noqa: F401
        except ImportError:
            raise DeviceError(
                "Several XPU processes need oneCCL: use a torch with xccl, or install oneccl_bindings_for_pytorch."
            ) from None
        return "xpu", "ccl"

    def executor(self, config: Configuration, processes: Processes | None = None) -> Executor:
        """Execute eagerly."""
        import torch

        from cosmictagger.devices.eager import eager_executor

        return eager_executor(config, torch.device("xpu", torch.xpu.current_device()), processes)
