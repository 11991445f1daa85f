"""Tracepoints for loading: one for each sample that is read, and one for each wait for a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from torch.utils.data import Dataset, IterableDataset

from poptorch._observation.trace_file import trace_file
from poptorch.profiling import Channel

__all__ = ["traced_batches", "traced_dataset"]


class _TracedDataset(Dataset[Any]):
    """A data set whose samples are read under a tracepoint; otherwise it behaves as the original."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._channel = Channel("dataset")

    def __getitem__(self, index: Any) -> Any:
        with self._channel.tracepoint("__getitem__"):
            return self._dataset[index]

    def __len__(self) -> int:
        return len(self._dataset)

    def __getattr__(self, name: str) -> Any:
        if name in ("_dataset", "__getstate__", "__setstate__"):
            raise AttributeError(name)
        return getattr(self._dataset, name)


def traced_dataset(dataset: Any) -> Any:
    """The data set with a tracepoint around each sample, if tracepoints are written to a file."""
    is_indexed = hasattr(type(dataset), "__getitem__") and not isinstance(dataset, IterableDataset)
    return _TracedDataset(dataset) if is_indexed and trace_file() is not None else dataset


def traced_batches(batches: Iterable[Any]) -> Iterator[Any]:
    """The batches with a tracepoint around the wait for each, if tracepoints are written to a file."""
    return iter(batches) if trace_file() is None else _waiting(iter(batches))


def _waiting(batches: Iterator[Any]) -> Iterator[Any]:
    channel, end = Channel("poptorch.DataLoader"), object()
    while True:
        with channel.tracepoint("next"):
            batch = next(batches, end)
        if batch is end:
            return
        yield batch
