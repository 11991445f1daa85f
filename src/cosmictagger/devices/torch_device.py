"""The common base of torch's devices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from cosmictagger.configuration.root import Configuration
from cosmictagger.configuration.run import Run
from pilotage import World

if TYPE_CHECKING:
    from cosmictagger.data.loader import Source
    from cosmictagger.devices.executor import Executor
    from cosmictagger.devices.loading import BatchLoader, Purpose
    from cosmictagger.processes.process_group import Processes


class TorchDevice(ABC):
    """A device whose processes exchange gradients through ``torch.distributed``."""

    @abstractmethod
    def exchange(self, world: World) -> tuple[str, str]:
        """The type of the tensors that hold the gradients, and the backend that exchanges them."""

    @abstractmethod
    def executor(self, config: Configuration, processes: Processes | None = None) -> Executor:
        """Build the configured network, ready to train and evaluate."""

    def environment(self, config: Configuration) -> dict[str, str]:
        """Variables to set before torch or a vendor's package is imported: none."""
        return {}

    def join(self, run: Run) -> Processes:
        """Connect to the other processes of the run, if any."""
        from cosmictagger.processes.joining import join

        return join(run, self.exchange)

    def loader(
        self, config: Configuration, source: Source, order: str, processes: Processes, purpose: Purpose
    ) -> BatchLoader:
        """This process's share of the batches, as dense images."""
        from cosmictagger.devices.loading import event_loader

        return event_loader(config, source, order, processes)
