"""The sources of events of a configuration."""

from __future__ import annotations

import os
from pathlib import Path

from cosmictagger.configuration.data import Generated, Real, Synthetic
from cosmictagger.configuration.root import Configuration
from cosmictagger.data.cached_events import BYTES_PER_PIXEL, CachedEvents
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.data.loader import Source
from cosmictagger.data.synthetic import SyntheticEvents
from cosmictagger.errors import ConfigurationError
from cosmictagger.records.process_log import LOGGER

MAX_CACHED_BYTES = 2**30
"""The largest file to cache, in bytes of its pixels."""

EVENTS_PER_PROCESS = 40
"""Generating fewer events takes less time than starting a process."""


def training_events(config: Configuration) -> EventFile | SyntheticEvents:
    """The events to train on."""
    data = config.data
    match data:
        case Generated():
            return _generated(data, data.events, data.generator_seed)
        case Real():
            return EventFile(Path(data.data_directory) / data.file)
        case Synthetic():
            return SyntheticEvents(config.run.minibatch_size, downsample=data.downsample, seed=data.seed)
        case other:
            raise ConfigurationError(f"data has the unknown type {type(other).__name__}.")


def validation_events(config: Configuration) -> EventFile | None:
    """Events to validate with during training; None for noise, and as in the original if there is no such file."""
    data = config.data
    match data:
        case Generated():
            return _generated(data, data.aux_events, data.generator_seed + 1)
        case Real():
            path = Path(data.data_directory) / data.aux_file
            if not path.is_file():
                LOGGER.warning("No validation: %s.", f"no file {path}" if data.aux_file else "data.aux_file is empty")
                return None
            return EventFile(path)
        case Synthetic():
            return None
        case other:
            raise ConfigurationError(f"data has the unknown type {type(other).__name__}.")


def events_to_predict(config: Configuration) -> EventFile | None:
    """The events of inference and visualize: generated ones that were not trained on, or ``data.file``; no noise."""
    data = config.data
    return EventFile(Path(data.data_directory) / data.file) if isinstance(data, Real) else validation_events(config)


def _generated(data: Generated, events: int, seed: int) -> EventFile:
    from cosmictagger.data.generator.file import generated_file
    from cosmictagger.data.generator.progress import occasional, terminal_progress

    workers = min(len(os.sched_getaffinity(0)), max(events // EVENTS_PER_PROCESS, 1))
    with terminal_progress(f"generating {events} events") as report:
        folder, report = Path(data.data_directory), report or occasional(_log_progress)
        return EventFile(generated_file(folder, events=events, seed=seed, workers=workers, progress=report))


def _log_progress(done: int, total: int) -> None:
    LOGGER.info("Generated %d of %d events", done, total, extra={"generated": (done, total)})


def cached(config: Configuration, source: EventFile | SyntheticEvents) -> Source:
    """Cache a file's decoded events if they fit in memory."""
    if not isinstance(source, EventFile) or source.pixels * BYTES_PER_PIXEL > MAX_CACHED_BYTES:
        return source
    return CachedEvents(source, downsample=config.data.downsample)
