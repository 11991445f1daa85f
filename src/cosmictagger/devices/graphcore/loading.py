"""Batches through PopTorch's data loader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import IterableDataset

import poptorch
from cosmictagger.configuration.mode import Train
from cosmictagger.configuration.root import Configuration
from cosmictagger.data.cached_events import CachedEvents
from cosmictagger.data.detector import PLANES
from cosmictagger.data.events import AnyBatch, Batch, PaddedBatch, SparseBatch, Truths
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.data.loader import Loader, Source
from cosmictagger.devices.graphcore.options import options_for
from cosmictagger.devices.loading import event_loader, planes_first
from cosmictagger.processes.process_group import Processes
from cosmictagger.training.precision import number_types

BYTES_PER_IMAGE_PIXEL, BYTES_PER_FILLED_PIXEL = 5, 9
"""Charge and label of each pixel; a filled pixel that is sent by itself also needs its index."""


class CombinedBatches(IterableDataset[tuple[Tensor, ...]]):
    """Everything that one call of a model consumes: this process's accumulated batches, concatenated."""

    def __init__(self, loader: Loader, accumulation: int) -> None:
        super().__init__()
        self._loader, self._accumulation = loader, accumulation

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        while True:
            parts = [_parts(next(self._loader)) for _ in range(self._accumulation)]
            yield parts[0] if len(parts) == 1 else tuple(torch.cat(each) for each in zip(*parts, strict=True))


class PopTorchLoader:
    """Passes the batches of a loader, which reads ahead in threads, through ``poptorch.DataLoader``."""

    def __init__(self, loader: Loader, options: poptorch.Options, accumulation: int = 1) -> None:
        self._loader, self.joined = loader, accumulation
        # Entries are already divided among processes, and batches have the size of a call.
        batches = CombinedBatches(loader, accumulation)
        self._batches = iter(
            poptorch.DataLoader(options, batches, batch_size=None, auto_distributed_partitioning=False)
        )

    def __iter__(self) -> Iterator[AnyBatch]:
        return self

    def __next__(self) -> Batch | PaddedBatch:
        arrays = [each.numpy() for each in next(self._batches)]
        if self._loader.form.pixels is None:
            image, label, entries, event_ids, *truths = arrays
            return Batch(image, label, entries, event_ids, Truths(*truths) if truths else None)
        index, charge, label, entries, event_ids, *truths = arrays
        shape = (len(index), *self._loader.shape[1:])
        return PaddedBatch(shape, index, charge, label, entries, event_ids, Truths(*truths) if truths else None)

    @property
    def events(self) -> int:
        """Events of the source: an epoch."""
        return self._loader.events

    @property
    def minibatch_size(self) -> int:
        """Events of a minibatch, over all processes."""
        return self._loader.minibatch_size

    def close(self) -> None:
        """Stop reading."""
        self._loader.close()

    def state(self) -> dict[str, Any]:
        """The position in the sequence."""
        return self._loader.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a saved position."""
        self._loader.restore(state)


def poptorch_loader(
    config: Configuration, source: Source, order: str, processes: Processes, *, training: bool
) -> PopTorchLoader:
    """The batches of a source, each with everything that one call of the model consumes."""
    pixels = pixels_to_send(config, source) if training else None
    accumulation = config.mode.optimizer.gradient_accumulation if training and isinstance(config.mode, Train) else 1
    numbers = number_types(config.run.precision, trains=training, rounds_at_random=True)
    options = options_for(config.run, numbers, [], accumulation=accumulation, training=training)
    return PopTorchLoader(event_loader(config, source, order, processes, pixels=pixels), options, accumulation)


def pixels_to_send(config: Configuration, source: Source) -> int | None:
    """How many filled pixels of each event to send; None if whole images are smaller."""
    if not planes_first(config) or not isinstance(source, EventFile | CachedEvents):
        return None
    height, width = (side >> config.data.downsample for side in source.shape)
    image, filled = PLANES * height * width * BYTES_PER_IMAGE_PIXEL, source.max_pixels * BYTES_PER_FILLED_PIXEL
    return source.max_pixels if filled < image else None


def _parts(batch: AnyBatch) -> tuple[Tensor, ...]:
    assert not isinstance(batch, SparseBatch)
    images = (batch.image,) if isinstance(batch, Batch) else (batch.index, batch.charge)
    truths = () if batch.truths is None else (batch.truths.event_label, batch.truths.vertex)
    arrays = (*images, batch.label, batch.entries, batch.event_ids, *truths)
    return tuple(torch.from_numpy(each) for each in arrays)
