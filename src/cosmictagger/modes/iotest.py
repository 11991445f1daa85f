"""mode=iotest: measuring how fast events are read."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from cosmictagger.configuration.mode import Iotest
from cosmictagger.configuration.root import Configuration
from cosmictagger.data.synthetic import SyntheticEvents
from cosmictagger.devices.choosing import device_for
from cosmictagger.devices.loading import BatchLoader, Purpose
from cosmictagger.errors import ConfigurationError
from cosmictagger.modes.sources import training_events
from cosmictagger.processes.process_group import Processes
from cosmictagger.records.process_log import LOGGER


def iotest(config: Configuration, folder: Path, processes: Processes) -> None:
    """Read and decode batches and log how fast that goes."""
    assert isinstance(config.mode, Iotest)
    source, first = training_events(config), config.mode.start_index
    if first >= len(source):
        raise ConfigurationError(
            f"mode.start_index is {first}, but there are only {len(source)} events, counted from 0."
        )
    # As in the original, events are read at random; with a start index, they are read in order.
    order = "serial_access" if first or isinstance(source, SyntheticEvents) else "random_blocks"
    loader = device_for(config).loader(config, source, order, processes, Purpose.reading)
    with closing(loader):
        if first:
            loader.restore({**loader.state(), "first": first})
        report = measure_reading(loader, config.run.iterations, log=LOGGER.info)
    if processes.is_distributed:
        _log_together(processes.gather([report.images, report.seconds]), processes.size)


def _log_together(reports: list[list[float]], processes: int) -> None:
    """The speed of all processes, which each read their share of the batches."""
    for rank, (images, seconds) in enumerate(reports):
        share = images / processes
        LOGGER.info("Process %d: %d images in %.4fs, %.2f images/s", rank, share, seconds, share / max(seconds, 1e-9))
    images, seconds = reports[0][0], max(seconds for _, seconds in reports)
    LOGGER.info("All processes: %d images in %.4fs, %.2f images/s", images, seconds, images / max(seconds, 1e-9))


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadingReport:
    """The speed of reading; the first batch is timed separately, as nothing was prefetched."""

    images: int
    seconds: float
    first_batch_seconds: float
    images_per_second: float
    """Over all batches, including the first."""
    steady_images_per_second: float
    """Without the first batch."""


def measure_reading(loader: BatchLoader, iterations: int, *, log: Callable[[str], object] = print) -> ReadingReport:
    """Fetch a number of batches and log how long each took."""
    begin = time.perf_counter()
    first = 0.0
    for iteration in range(iterations):
        start = time.perf_counter()
        next(loader)
        took = time.perf_counter() - start
        first = took if iteration == 0 else first
        log(f"{iteration}: Time to fetch a minibatch of data: {took:.4f}s")
    seconds = time.perf_counter() - begin
    report = _report(loader.minibatch_size, iterations, seconds, first)
    log(f"Total IO Time: {report.seconds:.4f}s")
    log(f"Total images read per batch: {loader.minibatch_size}")
    log(f"Average Image IO Throughput: {report.images_per_second:.2f} images/s")
    return report


def _report(minibatch_size: int, iterations: int, seconds: float, first: float) -> ReadingReport:
    images = minibatch_size * iterations
    rest = seconds - first
    return ReadingReport(
        images=images,
        seconds=seconds,
        first_batch_seconds=first,
        images_per_second=images / seconds if seconds else 0.0,
        steady_images_per_second=(images - minibatch_size) / rest if rest and iterations > 1 else 0.0,
    )
