"""Batches of any loader, combined for the calls of a wrapped model."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from pilotage.data.combine import concatenate
from pilotage.data.reading_ahead import read_ahead
from pilotage.door.compiled_model import CompiledModel
from pilotage.door.keywords import suggesting
from pilotage.door.padding import Padding
from pilotage.errors import OptionError


@suggesting
def batches(
    loader: Iterable[Any],
    step: CompiledModel,
    *,
    buckets: Sequence[int] | None = None,
    dimension: int = 1,
    padding: float | Mapping[Any, float] = 0,
    ahead: int | None = None,
    pin: bool | None = None,
) -> Batches:
    """Iterate over a loader in the portions that one call of ``step`` takes.

    ``loader`` is a ``torch.utils.data.DataLoader`` over any kind of data set, or another iterable of batches; each of
    its batches is one micro-batch. As many as a call takes (device iterations x gradient accumulation x replicas) are
    concatenated along their first dimension. What is left at the end of an epoch, and a smaller last batch, come as
    calls of their own with fewer micro-batches, so that an epoch trains on all its samples in the order of the loader.
    With several replicas or instances, micro-batches that do not fill an update are left out, with a warning.

    :param buckets: Pad the sequences of each batch to the next of these lengths.
    :param dimension: The dimension to pad.
    :param padding: What to pad with: a number, or numbers by the keys or positions of a batch's members; members that
        are not named are padded with 0.
    :param ahead: How many calls to prepare in a thread while one runs. By default 2 if the loader has worker processes.
        Without them the data set's code runs in this process, and reading ahead would change the order in which it and
        the model draw random numbers, so nothing is read ahead unless you say so.
    :param pin: Keep batches in pinned memory, which a card reads faster; by default if there is a CUDA device.
    """
    return Batches(
        loader,
        step,
        padding=None if buckets is None else Padding(buckets, dimension, padding),
        ahead=ahead,
        pin=torch.cuda.is_available() if pin is None else pin,
    )


class Batches:
    """An iterable over the portions of a loader; each iteration is an epoch."""

    def __init__(
        self, loader: Iterable[Any], step: CompiledModel, *, padding: Padding | None, ahead: int | None, pin: bool
    ) -> None:
        if ahead is not None and ahead < 0:
            raise OptionError(f"ahead is {ahead}. It must be at least 0.")
        batching = step.batching
        self.loader = loader
        """The loader as it was given, for ``loader.sampler.set_epoch()`` and the like."""
        self._parts = batching.micro_batches_per_call
        self._rounds = self._parts // batching.device_iterations
        self._takes_rest = batching.replicas * batching.instances == 1
        self._padding = padding
        self._pin = pin
        workers = getattr(loader, "num_workers", 0)
        self._ahead = (2 if workers else 0) if ahead is None else ahead
        self._said_rest = False

    def __iter__(self) -> Iterator[Any]:
        # Here, so that a loader draws its seeds before the first call of the model.
        source = iter(self.loader)
        combined = self._combined(source)
        return read_ahead(combined, self._ahead) if self._ahead else combined

    def __len__(self) -> int:
        """The number of calls of an epoch, if the loader knows its length and only its last batch is smaller."""
        if not isinstance(self.loader, Sized):
            raise TypeError(f"{type(self.loader).__name__} has no length, so the number of calls is not known.")
        count, odd = len(self.loader), self._odd_batches()
        whole, rest = divmod(count - odd, self._parts)
        if not self._takes_rest:
            return whole + (rest >= self._rounds)
        return whole + (rest >= self._rounds) + (rest % self._rounds > 0) + odd

    def _odd_batches(self) -> int:
        size, sampler = getattr(self.loader, "batch_size", None), getattr(self.loader, "sampler", None)
        if size is None or getattr(self.loader, "drop_last", False) or not isinstance(sampler, Sized):
            return 0
        return int(len(sampler) % size > 0)

    def _combined(self, source: Iterator[Any]) -> Iterator[Any]:
        group: list[Any] = []
        forms: list[torch.Size] = []
        for batch in source:
            batch = batch if self._padding is None else self._padding.padded(batch)
            present = [tensor.shape for tensor in tensors_of(batch)]
            if group and present != forms:
                yield from self._divided(group)
                group = []
            forms = present
            group.append(batch)
            if len(group) == self._parts:
                yield self._ready(group)
                group = []
        yield from self._divided(group)

    def _divided(self, group: Sequence[Any]) -> Iterator[Any]:
        """The remaining batches at the end, or before a batch of another shape."""
        whole = len(group) - len(group) % self._rounds
        if whole:
            yield self._ready(group[:whole])
        if whole == len(group):
            return
        if self._takes_rest:
            yield self._ready(group[whole:])
        elif not self._said_rest:
            self._said_rest = True
            warnings.warn(
                f"{len(group) - whole} batches do not fill an update, which takes {self._rounds}, and are left out. "
                "Set drop_last=True in the loader, or choose a number of samples that fills all replicas.",
                stacklevel=3,
            )

    def _ready(self, group: Sequence[Any]) -> Any:
        joined = concatenate(list(group))
        return pinned(joined) if self._pin else joined


def tensors_of(batch: Any) -> Iterator[Tensor]:
    """The tensors of a batch."""
    if isinstance(batch, Tensor):
        yield batch
    elif isinstance(batch, Mapping):
        for value in batch.values():
            yield from tensors_of(value)
    elif isinstance(batch, list | tuple):
        for value in batch:
            yield from tensors_of(value)


def pinned(batch: Any) -> Any:
    """A batch in pinned memory, as torch's own loader pins it."""
    data: Any = [batch]
    return next(iter(DataLoader(data, batch_size=None, pin_memory=True)))
