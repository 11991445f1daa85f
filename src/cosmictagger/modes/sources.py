"""Where a configuration's events come from."""

from __future__ import annotations

import os
from pathlib import Path

from cosmictagger.configuration.choices import ComputeMode, DataFormat
from cosmictagger.configuration.data import Generated, Real
from cosmictagger.configuration.root import Configuration
from cosmictagger.data.files import EventFile
from cosmictagger.data.loader import Loader
from cosmictagger.data.synthetic import SyntheticEvents

EVENTS_PER_PROCESS = 40
"""Fewer are drawn sooner than a process is started for them."""


def training_events(chosen: Configuration) -> EventFile | SyntheticEvents:
    """The events to train on."""
    data = chosen.data
    match data:
        case Generated():
            return _generated(data, data.events, data.generator_seed)
        case Real():
            return EventFile(Path(data.data_directory) / data.file)
        case _:
            return SyntheticEvents(chosen.run.minibatch_size, downsample=data.downsample, seed=data.seed)


def held_out_events(chosen: Configuration) -> EventFile | None:
    """Events that are never trained on; noise has none."""
    data = chosen.data
    match data:
        case Generated():
            return _generated(data, data.aux_events, data.generator_seed + 1)
        case Real():
            return EventFile(Path(data.data_directory) / data.aux_file)
        case _:
            return None


def _generated(data: Generated, events: int, seed: int) -> EventFile:
    from cosmictagger.data.generator.file import generated_file
    from cosmictagger.data.generator.progress import terminal_progress

    workers = min(len(os.sched_getaffinity(0)), max(events // EVENTS_PER_PROCESS, 1))
    with terminal_progress(f"drawing {events} events") as told:
        folder = Path(data.data_directory)
        return EventFile(generated_file(folder, events=events, seed=seed, workers=workers, progress=told))


def loader_for(chosen: Configuration, source: EventFile | SyntheticEvents, order: str) -> Loader:
    """Batches of a source, as the configured device likes them best."""
    data = chosen.data
    planes_first = data.data_format is DataFormat.channels_first
    on_card = chosen.run.compute_mode is ComputeMode.GPU
    return Loader(
        source,
        minibatch_size=chosen.run.minibatch_size,
        downsample=data.downsample,
        order=order,
        seed=data.seed,
        # Filled pixels are a hundredth of a picture, and a card spreads them out faster than a bus brings the rest.
        sparse=on_card and planes_first and isinstance(source, EventFile),
        img_transform=data.img_transform,
        data_format=data.data_format.name,
        workers=data.workers or None,
    )
