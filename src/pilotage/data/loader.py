"""torch's DataLoader, yielding all micro-batches of a host call at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, Sampler

from pilotage.data.bulk import bulk_reader
from pilotage.data.combine import grouped
from pilotage.data.empty_loader import empty_loader_error, require_one
from pilotage.data.partition import Shard, ShardSampler
from pilotage.errors import OptionError
from pilotage.options.batching import Batching
from pilotage.program.structure import Parsers
from pilotage.torch_private import LOADER_ITERATOR


class Loader(DataLoader[Any]):
    """Loads combined batches: ``batch_size`` samples for every micro-batch of a call, in the data set's order.

    Everything else is as in torch: shuffling draws the same order from the same seed, and all further arguments
    (``collate_fn``, ``sampler``, ``worker_init_fn``...) are passed on. Note that ``drop_last`` is on by default.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        batching: Batching | None = None,
        *,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        drop_last: bool = True,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        shard: Shard | None = None,
        shuffle_seed: int | None = None,
        piece_size: int | None = None,
        num_workers: int = 0,
        persistent_workers: bool | None = None,
        parsers: Parsers | None = None,
        **torch_arguments: Any,
    ) -> None:
        """Arguments beyond torch's: ``parsers`` take objects of the user's types apart to combine the batches of a
        batch_sampler, ``shard`` selects this process's part of the data set, and ``shuffle_seed`` has all
        processes shuffle alike. ``piece_size`` yields pieces of that many samples, or a batch_sampler's own batches,
        instead of combined batches; a Prefetcher combines them.
        """
        self.batching = batching or Batching()
        self.combined_batch_size = combined_batch_size(self.batching, batch_size, batch_sampler)
        self.drops_incomplete = drop_last
        self._parsers = parsers
        self._processes = 1 if shard is None else shard.processes
        self._batches_per_item = 1 if batch_sampler is None or piece_size else self.batching.micro_batches_per_call
        if shard is not None and shard.processes > 1:
            _check_divisible(dataset, batch_size, sampler, batch_sampler, shuffle, shuffle_seed)
            sampler = ShardSampler(
                dataset,  # type: ignore[arg-type]
                shard=shard,
                step=self.combined_batch_size or 1,
                drop_last=drop_last,
                shuffle_seed=shuffle_seed if shuffle else None,
            )
            shuffle = None
        whole_batches = batch_sampler is None and batch_size is not None
        super().__init__(
            dataset,
            batch_size=(piece_size or self.combined_batch_size) if whole_batches else batch_size,
            shuffle=shuffle,
            sampler=sampler,
            batch_sampler=batch_sampler,
            num_workers=num_workers,
            drop_last=drop_last and whole_batches and piece_size is None,
            persistent_workers=num_workers > 0 if persistent_workers is None else persistent_workers,
            **torch_arguments,
        )

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        self.check_not_empty()
        batches: Iterator[Any] = self._read_in_bulk() or super().__iter__()
        if self._batches_per_item > 1:
            batches = grouped(batches, self._batches_per_item, drop_last=self.drops_incomplete, parsers=self._parsers)
        return batches if self._has_known_length else require_one(batches, self._empty_loader_error())

    def check_not_empty(self) -> None:
        """Raise if the loader is known in advance to have no batch."""
        if self._has_known_length and len(self) == 0 and not self._is_empty_shard:
            raise self._empty_loader_error()

    def __len__(self) -> int:
        whole, rest = divmod(super().__len__(), self._batches_per_item)
        return whole + (rest > 0 and not self.drops_incomplete)

    def __getstate__(self) -> dict[str, Any]:
        # Running workers belong to the process that started them.
        return self.__dict__ | {LOADER_ITERATOR: None}

    @property
    def reads_here(self) -> bool:
        """Whether this process draws the samples, batch by batch, and no other process reads ahead."""
        return True

    @property
    def samples(self) -> int:
        """Samples that this process reads per epoch; raises TypeError if the data set has no length."""
        if isinstance(self.dataset, IterableDataset):
            return len(self.dataset)  # type: ignore[arg-type]
        if self._batch_sampler_is_given:
            return _samples_drawn_by(self.batch_sampler)
        return len(self.sampler)  # type: ignore[arg-type]

    @property
    def _has_known_length(self) -> bool:
        if isinstance(self.dataset, IterableDataset):
            # Its length need not match what it yields.
            return False
        try:
            len(self)
        except (TypeError, NotImplementedError):
            return False
        return True

    @property
    def _is_empty_shard(self) -> bool:
        """Whether this process gets nothing because there are fewer items than processes."""
        return self._processes > 1 and not self.drops_incomplete and len(self.dataset) > 0  # type: ignore[arg-type]

    def _empty_loader_error(self) -> OptionError:
        return empty_loader_error(
            items=_known(lambda: len(self.dataset)),  # type: ignore[arg-type]
            own_items=_known(lambda: self.samples),
            combined=self.combined_batch_size,
            micro_batches=self.batching.micro_batches_per_call,
            processes=self._processes,
        )

    @property
    def _batch_sampler_is_given(self) -> bool:
        return self.batch_size is None and self.batch_sampler is not None

    def _read_in_bulk(self) -> Iterator[Any] | None:
        in_this_process = self.num_workers == 0 and not self.pin_memory and not self.timeout
        if not in_this_process or self.batch_sampler is None or isinstance(self.dataset, IterableDataset):
            return None
        reader = bulk_reader(self.dataset, self.collate_fn)
        if reader is None:
            return None
        batches = map(reader, self.batch_sampler)
        # torch's loader draws a seed for its workers even without any; do the same, so that later numbers agree.
        torch.empty((), dtype=torch.int64).random_(generator=self.generator)
        return batches


def _known(count: Callable[[], int]) -> int | None:
    try:
        return count()
    except (AttributeError, NotImplementedError, TypeError):
        return None


def combined_batch_size(batching: Batching, batch_size: int | None, batch_sampler: object = None) -> int | None:
    """Samples that one call consumes; None if the size of the batches is unknown."""
    if batch_sampler is not None:
        batch_size = getattr(batch_sampler, "batch_size", None)
    return None if batch_size is None else batch_size * batching.micro_batches_per_call


def _check_divisible(
    dataset: Dataset[Any],
    batch_size: int | None,
    sampler: object,
    batch_sampler: object,
    shuffle: bool | None,
    shuffle_seed: int | None,
) -> None:
    if isinstance(dataset, IterableDataset):
        raise OptionError(
            "An IterableDataset cannot be divided among processes from outside. "
            "Have its __iter__ yield this process's part, and leave out shard."
        )
    if batch_size is None or batch_sampler is not None or sampler is not None:
        raise OptionError(
            "With batch_size=None or your own sampler or batch_sampler, the loader does not know which samples belong "
            "to this process. Divide them there, and leave out shard."
        )
    if shuffle and shuffle_seed is None:
        raise OptionError("All processes must shuffle the data set in the same order. Give them the same shuffle_seed.")


def _samples_drawn_by(batch_sampler: Any) -> int:
    if isinstance(batch_sampler, BatchSampler) and not batch_sampler.drop_last:
        return len(batch_sampler.sampler)  # type: ignore[arg-type]
    size: int = batch_sampler.batch_size
    return len(batch_sampler) * size
