"""Where a configuration's events come from."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cosmictagger.configuration.choices import ComputeMode, DataFormat
from cosmictagger.configuration.data import Generated, Real
from cosmictagger.configuration.mode import Train
from cosmictagger.configuration.root import Configuration
from cosmictagger.data.detector import PLANES
from cosmictagger.data.files import EventFile
from cosmictagger.data.held import BYTES_PER_PIXEL, HeldEvents
from cosmictagger.data.loader import Loader, Source
from cosmictagger.data.synthetic import SyntheticEvents
from cosmictagger.processes.together import Processes
from cosmictagger.training.precision import NUMBERS

if TYPE_CHECKING:
    from cosmictagger.devices.graphcore.loading import PopTorchLoader

MOST_HELD_BYTES = 2**30
"""How much memory the pixels of one file may take."""

BYTES_IN_PICTURES, BYTES_OF_PIXELS = 5, 9
"""Of each pixel, charge and label; of a filled one that is sent alone, its place as well."""

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


def held(chosen: Configuration, source: EventFile | SyntheticEvents) -> Source:
    """Events that fit into memory are decoded once, and not whenever they are drawn again."""
    if not isinstance(source, EventFile) or source.pixels * BYTES_PER_PIXEL > MOST_HELD_BYTES:
        return source
    return HeldEvents(source, downsample=chosen.data.downsample)


def loader_for(
    chosen: Configuration, source: Source, order: str, processes: Processes, *, training: bool = True
) -> Loader | PopTorchLoader:
    """This process's share of the batches of a source, as the configured device likes them best."""
    pixels = pixels_to_send(chosen, source) if training else None
    loader = reading_loader(chosen, source, order, processes, pixels)
    return loader if chosen.run.compute_mode is not ComputeMode.IPU else _through_poptorch(chosen, loader, training)


def pixels_to_send(chosen: Configuration, source: Source) -> int | None:
    """How many filled pixels of each event an IPU is sent; None where pictures are sent, which may be less."""
    is_wanted = chosen.run.compute_mode is ComputeMode.IPU and chosen.data.data_format is DataFormat.channels_first
    if not is_wanted or not isinstance(source, EventFile | HeldEvents):
        return None
    height, width = (side >> chosen.data.downsample for side in source.shape)
    picture, filled = PLANES * height * width * BYTES_IN_PICTURES, source.most_pixels * BYTES_OF_PIXELS
    return source.most_pixels if filled < picture else None


def reading_loader(
    chosen: Configuration, source: Source, order: str, processes: Processes, pixels: int | None = None
) -> Loader:
    """The same, as it is read."""
    data = chosen.data
    planes_first = data.data_format is DataFormat.channels_first
    on_card = chosen.run.compute_mode is ComputeMode.GPU
    return Loader(
        source,
        minibatch_size=chosen.run.minibatch_size,
        downsample=data.downsample,
        order=order,
        seed=processes.first(data.seed or time.time_ns() % 2**62 + 1),
        # Filled pixels are a hundredth of a picture, and a card spreads them out faster than a bus brings the rest.
        sparse=(on_card and planes_first and not isinstance(source, SyntheticEvents)) or pixels is not None,
        img_transform=data.img_transform,
        data_format=data.data_format.name,
        workers=data.workers or None,
        rank=processes.rank,
        size=processes.size,
        truths=chosen.network.event_label or chosen.network.vertex,
        pixels=pixels,
    )


def _through_poptorch(chosen: Configuration, loader: Loader, training: bool) -> PopTorchLoader:
    from cosmictagger.devices.graphcore.loading import PopTorchLoader
    from cosmictagger.devices.graphcore.options import options_for

    accumulation = chosen.mode.optimizer.gradient_accumulation if training and isinstance(chosen.mode, Train) else 1
    numbers = NUMBERS[chosen.run.precision]
    options = options_for(chosen.run, numbers, [], accumulation=accumulation, training=training)
    return PopTorchLoader(loader, options, accumulation)
