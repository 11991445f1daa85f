"""run.compute_mode=IPU."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cosmictagger.configuration.root import Configuration
from cosmictagger.configuration.run import Run

if TYPE_CHECKING:
    from cosmictagger.data.loader import Source
    from cosmictagger.devices.executor import Executor
    from cosmictagger.devices.loading import BatchLoader, Purpose
    from cosmictagger.processes.process_group import Processes

TIER = "PILOTAGE_TIER"


class GraphcoreDevice:
    """An IPU, or the device that Pilotage's drop-in finds behind PopTorch's interface."""

    def environment(self, config: Configuration) -> dict[str, str]:
        """Pin the tier, unless the user has: results must not depend on when a faster executable is ready."""
        tier = config.framework.environment_variables.get(TIER, os.environ.get(TIER, "graph"))
        return {TIER: str(tier)}

    def join(self, run: Run) -> Processes:
        """Connect to the other instances, if any: through PopDist where poprun started them, otherwise by gloo."""
        import torch.distributed as dist

        import pilotage
        import popdist
        from cosmictagger.processes.joining import connect
        from cosmictagger.processes.process_group import Processes

        by_popdist = popdist.isPopdistEnvSet()
        if by_popdist:
            popdist.init()
        world = pilotage.world_here()
        if not by_popdist and not run.distributed:
            return Processes()
        if world.size > 1 and not (by_popdist and dist.is_initialized()):
            # Values of the host go through gloo.
            connect(world, "gloo")
        if by_popdist:
            return Processes(world=world, backend="popdist", per_instance_files=True)
        return Processes(world=world, backend="gloo" if world.size > 1 else "none")

    def loader(
        self, config: Configuration, source: Source, order: str, processes: Processes, purpose: Purpose
    ) -> BatchLoader:
        """Batches through PopTorch's data loader, each with everything that one call consumes."""
        from cosmictagger.devices.graphcore.loading import poptorch_loader
        from cosmictagger.devices.loading import Purpose, event_loader

        if purpose is Purpose.reading:
            return event_loader(config, source, order, processes)
        return poptorch_loader(config, source, order, processes, training=purpose is Purpose.training)

    def executor(self, config: Configuration, processes: Processes | None = None) -> Executor:
        """Wrap the network with PopTorch's training and inference models."""
        from cosmictagger.devices.graphcore.executor import poptorch_executor

        return poptorch_executor(config, processes)
