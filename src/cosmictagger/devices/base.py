"""What every compute mode offers. Training, evaluation and records do not ask for the mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cosmictagger.configuration.root import Configuration
from cosmictagger.configuration.run import Run

if TYPE_CHECKING:
    from cosmictagger.data.loader import Source
    from cosmictagger.devices.executor import Executor
    from cosmictagger.devices.loading import BatchLoader, Purpose
    from cosmictagger.processes.process_group import Processes


class Device(Protocol):
    """One compute mode. Creating a device imports neither torch nor a vendor's package."""

    def environment(self, config: Configuration) -> dict[str, str]:
        """Variables to set before torch or a vendor's package is imported."""
        ...

    def join(self, run: Run) -> Processes:
        """Connect to the other processes of the run, if any."""
        ...

    def loader(
        self, config: Configuration, source: Source, order: str, processes: Processes, purpose: Purpose
    ) -> BatchLoader:
        """This process's share of the batches, in the form that suits the device."""
        ...

    def executor(self, config: Configuration, processes: Processes | None = None) -> Executor:
        """Build the configured network, ready to train and evaluate."""
        ...
