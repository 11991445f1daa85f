"""run.compute_mode=GPU: an NVIDIA card."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pilotage
from cosmictagger.configuration.choices import Engine
from cosmictagger.configuration.framework import Torch
from cosmictagger.configuration.root import Configuration
from cosmictagger.devices.torch_device import TorchDevice
from pilotage import World

if TYPE_CHECKING:
    from cosmictagger.data.loader import Source
    from cosmictagger.devices.executor import Executor
    from cosmictagger.devices.loading import BatchLoader, Purpose
    from cosmictagger.processes.process_group import Processes


class CudaDevice(TorchDevice):
    """An NVIDIA card."""

    def environment(self, config: Configuration) -> dict[str, str]:
        """Let each process of a host see only its own card."""
        world = pilotage.world_here()
        if world.size == 1:
            return {}
        visible = [card for card in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if card]
        return {"CUDA_VISIBLE_DEVICES": visible[world.local_rank % len(visible)] if visible else str(world.local_rank)}

    def exchange(self, world: World) -> tuple[str, str]:
        """NCCL exchanges gradients between cards."""
        return "cuda", "nccl"

    def loader(
        self, config: Configuration, source: Source, order: str, processes: Processes, purpose: Purpose
    ) -> BatchLoader:
        """Only the filled pixels, a hundredth of an image: a card scatters them faster than the bus brings the rest."""
        from cosmictagger.data.synthetic import SyntheticEvents
        from cosmictagger.devices.loading import event_loader, planes_first

        sparse = planes_first(config) and not isinstance(source, SyntheticEvents)
        return event_loader(config, source, order, processes, sparse=sparse)

    def executor(self, config: Configuration, processes: Processes | None = None) -> Executor:
        """Execute captured programs where they are possible and not refused."""
        import torch

        from cosmictagger.devices.card import prepare_card
        from cosmictagger.devices.eager import eager_executor
        from cosmictagger.devices.engine import engine_executor
        from cosmictagger.devices.setup import reason_for_eager

        prepare_card()
        asked = isinstance(config.framework, Torch) and config.framework.engine is Engine.eager
        reason = "framework.engine=eager" if asked else reason_for_eager(config)
        if reason is not None:
            return eager_executor(config, torch.device("cuda", torch.cuda.current_device()), processes, reason=reason)
        return engine_executor(config, "cuda", processes)
