"""mode=iotest."""

from __future__ import annotations

from pathlib import Path

from cosmictagger.configuration.mode import Iotest
from cosmictagger.configuration.root import Configuration
from cosmictagger.data.iotest import measure_reading
from cosmictagger.data.synthetic import SyntheticEvents
from cosmictagger.modes.sources import reading_loader, training_events
from cosmictagger.processes.together import Processes
from cosmictagger.records.process_log import LOGGER


def iotest(chosen: Configuration, folder: Path, processes: Processes) -> None:
    """Read batches and say how fast that goes; every one of them is decoded."""
    assert isinstance(chosen.mode, Iotest)
    source = training_events(chosen)
    order = "serial_access" if isinstance(source, SyntheticEvents) else "random_blocks"
    with reading_loader(chosen, source, order, processes) as loader:
        measure_reading(loader, chosen.run.iterations, log=LOGGER.info)
