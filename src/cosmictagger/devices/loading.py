"""Batches of a configuration, as devices read them."""

from __future__ import annotations

import time
from enum import Enum
from typing import Any, Protocol

from cosmictagger.configuration.choices import DataFormat
from cosmictagger.configuration.root import Configuration
from cosmictagger.data.events import AnyBatch
from cosmictagger.data.loader import Loader, Source
from cosmictagger.processes.process_group import Processes


class Purpose(Enum):
    """What batches are loaded for."""

    training = "training"
    validation = "validation"
    reading = "reading"
    """Measuring how fast events are read; nothing computes."""


class BatchLoader(Protocol):
    """An endless sequence of batches that a checkpoint can resume."""

    @property
    def events(self) -> int:
        """Events of the source: an epoch."""
        ...

    @property
    def minibatch_size(self) -> int:
        """Events of a minibatch, over all processes."""
        ...

    @property
    def joined(self) -> int:
        """Minibatches that each batch joins, for devices that accumulate gradients in one call."""
        ...

    def __next__(self) -> AnyBatch:
        """The next batch of this process."""
        ...

    def state(self) -> dict[str, Any]:
        """The position in the sequence."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a saved position."""
        ...

    def close(self) -> None:
        """Stop reading."""
        ...


def event_loader(
    config: Configuration,
    source: Source,
    order: str,
    processes: Processes,
    *,
    sparse: bool = False,
    pixels: int | None = None,
) -> Loader:
    """This process's share of the batches of a source, prepared by threads."""
    data = config.data
    return Loader(
        source,
        minibatch_size=config.run.minibatch_size,
        downsample=data.downsample,
        order=order,
        seed=processes.broadcast(data.seed or time.time_ns() % 2**62 + 1),
        sparse=sparse or pixels is not None,
        img_transform=data.img_transform,
        data_format=data.data_format.name,
        workers=data.workers or None,
        rank=processes.rank,
        size=processes.size,
        truths=config.network.event_label or config.network.vertex,
        pixels=pixels,
    )


def planes_first(config: Configuration) -> bool:
    """Whether batches have the planes first, as filled pixels are sent."""
    return config.data.data_format is DataFormat.channels_first
