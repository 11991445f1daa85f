"""Events through PopTorch's data loader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import IterableDataset

import poptorch
from cosmictagger.data.events import AnyBatch, Batch, PaddedBatch, SparseBatch, Truths
from cosmictagger.data.loader import Loader


class CombinedBatches(IterableDataset[tuple[Tensor, ...]]):
    """What one call of a model consumes: the batches of this process that are accumulated, one behind the other."""

    def __init__(self, loader: Loader, accumulation: int) -> None:
        super().__init__()
        self._loader, self._accumulation = loader, accumulation

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        while True:
            parts = [_parts(next(self._loader)) for _ in range(self._accumulation)]
            yield parts[0] if len(parts) == 1 else tuple(torch.cat(each) for each in zip(*parts, strict=True))


class PopTorchLoader:
    """A loader of events whose batches go through ``poptorch.DataLoader``; threads of its own have read them before."""

    def __init__(self, loader: Loader, options: poptorch.Options, accumulation: int = 1) -> None:
        self._loader = loader
        # The entries of each process are its share already, and batches have the size of a call.
        batches = CombinedBatches(loader, accumulation)
        self._batches = iter(
            poptorch.DataLoader(options, batches, batch_size=None, auto_distributed_partitioning=False)
        )

    def __iter__(self) -> Iterator[AnyBatch]:
        return self

    def __next__(self) -> Batch | PaddedBatch:
        arrays = [each.numpy() for each in next(self._batches)]
        if self._loader.pixels is None:
            image, label, entries, event_ids, *truths = arrays
            return Batch(image, label, entries, event_ids, Truths(*truths) if truths else None)
        index, charge, label, entries, event_ids, *truths = arrays
        shape = (len(index), *self._loader.shape[1:])
        return PaddedBatch(shape, index, charge, label, entries, event_ids, Truths(*truths) if truths else None)

    @property
    def events(self) -> int:
        """Events of the source: an epoch."""
        return self._loader.events

    def close(self) -> None:
        """Stop the reading."""
        self._loader.close()

    def state(self) -> dict[str, Any]:
        """Where the sequence stands."""
        return self._loader.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where the state was taken."""
        self._loader.restore(state)


def _parts(batch: AnyBatch) -> tuple[Tensor, ...]:
    assert not isinstance(batch, SparseBatch)
    pictures = (batch.image,) if isinstance(batch, Batch) else (batch.index, batch.charge)
    truths = () if batch.truths is None else (batch.truths.event_label, batch.truths.vertex)
    arrays = (*pictures, batch.label, batch.entries, batch.event_ids, *truths)
    return tuple(torch.from_numpy(each) for each in arrays)
