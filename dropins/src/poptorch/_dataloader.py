"""PopTorch's data loader: torch's, but it yields what one call of a model consumes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from torch.utils.data import Dataset, IterableDataset

from pilotage.engine import Loader, Shard, combined_batch_size
from poptorch._args_parser import registered_parsers
from poptorch._data.asynchronous_data_accessor import AsynchronousDataAccessor
from poptorch._data.traced_data import traced_batches, traced_dataset
from poptorch._errors import createPoptorchError
from poptorch._logging import logger
from poptorch._options.execution import batching_of
from poptorch.enums import DataLoaderMode
from poptorch.options import Options

__all__ = ["AsynchronousDataAccessor", "DataLoader"]


class DataLoader(Loader):
    """Loads, for each call of a model, the samples of all its device iterations, replicas and accumulation steps.

    A subclass of ``torch.utils.data.DataLoader``, whose further arguments it takes. ``drop_last`` is on by default.
    """

    _accessor: AsynchronousDataAccessor | None = None

    def __init__(
        self,
        options: Options,
        dataset: Dataset[Any],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        num_workers: int = 0,
        drop_last: bool = True,
        persistent_workers: bool | None = None,
        auto_distributed_partitioning: bool = True,
        mode: DataLoaderMode = DataLoaderMode.Sync,
        async_options: dict[str, Any] | None = None,
        rebatched_worker_size: int | None = None,
        batch_sampler: Any = None,
        **kwargs: Any,
    ) -> None:
        """Freeze ``options`` and, in an asynchronous mode, start loading."""
        _check_types(options, mode)
        options._freeze()
        is_divided = auto_distributed_partitioning and options.Distributed.numProcesses > 1
        _check_batch_sampler(batch_sampler, batch_size, shuffle, is_divided)
        if is_divided:
            _check_divisible(options, dataset, batch_size, shuffle, kwargs)
        batching = batching_of(options)
        combined = combined_batch_size(batching, batch_size, batch_sampler)
        self._rebatched_size = _rebatched_size(mode, combined, drop_last, batch_sampler, rebatched_worker_size)
        self.rebatched_drop_last = drop_last if self._rebatched_size else None
        if batch_size is not None:
            self._options = options
        super().__init__(
            traced_dataset(dataset),
            batching,
            batch_size=batch_size,
            shuffle=shuffle,
            drop_last=drop_last,
            batch_sampler=batch_sampler,
            shard=_shard_of(options) if is_divided else None,
            shuffle_seed=options.random_seed if options.exists("random_seed") else None,
            piece_size=self._rebatched_size and (rebatched_worker_size or self._rebatched_size),
            num_workers=num_workers,
            persistent_workers=persistent_workers,
            parsers=registered_parsers(),
            **kwargs,
        )
        self._warn_of_surprises()
        if mode != DataLoaderMode.Sync:
            self._accessor = self._asynchronous(async_options or {})
        elif async_options:
            logger.warning("async_options have no effect with mode=poptorch.DataLoaderMode.Sync.")

    @property
    def combinedBatchSize(self) -> int | None:
        """Samples in each yielded batch; None if the data set or the sampler decides."""
        return self.combined_batch_size

    @property
    def options(self) -> Options:
        """The options of this loader; only if it does the batching, so not with ``batch_size=None``."""
        return self._options

    @property
    def reads_here(self) -> bool:
        """Whether samples are drawn by this process: not in an asynchronous mode."""
        return self._accessor is None

    def __len__(self) -> int:
        if self._rebatched_size is None:
            return super().__len__()
        whole, rest = divmod(self.samples, self._rebatched_size)
        return whole + (rest > 0 and not self.rebatched_drop_last)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        return traced_batches(super().__iter__() if self._accessor is None else self._accessor)

    def __getstate__(self) -> dict[str, Any]:
        # A copy, for instance in the process that loads for this one, reads by itself.
        return super().__getstate__() | {"_accessor": None}

    def __del__(self) -> None:
        self.terminate()

    def terminate(self) -> None:
        """Stop the process that loads, if any."""
        if self._accessor is not None:
            self._accessor.terminate()

    def _asynchronous(self, async_options: dict[str, Any]) -> AsynchronousDataAccessor:
        if "rebatched_size" in async_options:
            raise AssertionError(
                "async_options must not contain rebatched_size: use mode=poptorch.DataLoaderMode.AsyncRebatched."
            )
        if self._rebatched_size is not None:
            async_options = {**async_options, "rebatched_size": self._rebatched_size}
        # A copy: an accessor that held this loader would keep it, and itself, alive.
        reader = copy.copy(self)
        if reader.pin_memory:
            logger.warning("pin_memory has no effect here: the batches of an asynchronous loader are in shared memory.")
            reader.pin_memory = False
        return AsynchronousDataAccessor(reader, **async_options)

    def _warn_of_surprises(self) -> None:
        if isinstance(self.dataset, IterableDataset):
            if self.num_workers > 1 and self.worker_init_fn is None:
                logger.warning(
                    "An IterableDataset is read by %d workers without a worker_init_fn: each of them yields the whole "
                    "data set, so samples are duplicated. Pass a worker_init_fn that gives each worker its part.",
                    self.num_workers,
                )
        elif self.combined_batch_size and not self.drops_incomplete:
            self._warn_of_smaller_last_batch(self.combined_batch_size)

    def _warn_of_smaller_last_batch(self, combined: int) -> None:
        try:
            samples = self.samples
        except (TypeError, NotImplementedError):
            logger.info("The sampler has no usable length, so whether the last batch is complete is not known.")
            return
        if samples % combined:
            logger.warning(
                "The %d samples to load are not divisible by the combined batch size of %d, and drop_last is False: "
                "the last batch will be smaller. A compiled model accepts batches of one size only.",
                samples,
                combined,
            )


def _check_types(options: Options, mode: DataLoaderMode) -> None:
    if not isinstance(options, Options):
        raise AssertionError(f"options must be a poptorch.Options object, not {type(options).__name__}.")
    if not isinstance(mode, DataLoaderMode):
        raise AssertionError(f"mode must be a poptorch.DataLoaderMode, not {mode!r}.")


def _check_batch_sampler(batch_sampler: Any, batch_size: int | None, shuffle: bool | None, is_divided: bool) -> None:
    if batch_sampler is None:
        return
    if batch_size != 1 or shuffle:
        raise createPoptorchError("batch_sampler is mutually exclusive with batch_size and shuffle: leave them out.")
    if is_divided:
        raise createPoptorchError(
            "A batch_sampler cannot be divided among processes. Set auto_distributed_partitioning=False, and let the "
            "sampler draw the samples of this process."
        )


def _check_divisible(
    options: Options, dataset: Dataset[Any], batch_size: int | None, shuffle: bool | None, kwargs: dict[str, Any]
) -> None:
    if isinstance(dataset, IterableDataset):
        raise AssertionError(
            "auto_distributed_partitioning does not work for an IterableDataset: set it to False, and have the data "
            "set yield the samples of this process."
        )
    if batch_size is None:
        raise AssertionError("batch_size=None cannot be combined with auto_distributed_partitioning: set it to False.")
    if shuffle and not options.exists("random_seed"):
        raise AssertionError(
            "All processes must shuffle the data set in the same order: call poptorch.Options().randomSeed(seed) with "
            "the same seed in each of them."
        )
    if kwargs.get("sampler") is not None:
        raise createPoptorchError(
            "A sampler cannot be divided among processes. Set auto_distributed_partitioning=False, and let the "
            "sampler draw the samples of this process."
        )


def _shard_of(options: Options) -> Shard:
    return Shard(process=options.Distributed.processId, processes=options.Distributed.numProcesses)


def _rebatched_size(
    mode: DataLoaderMode, combined: int | None, drop_last: bool, batch_sampler: Any, worker_size: int | None
) -> int | None:
    """The batch size to which the accessor combines loaded pieces; None if it does not combine them."""
    must = mode == DataLoaderMode.AsyncRebatched
    if must and combined is None:
        raise AssertionError("DataLoaderMode.AsyncRebatched needs a batch_size, or a batch_sampler with a batch_size.")
    if must or (mode == DataLoaderMode.Async and not drop_last):
        if worker_size is not None and batch_sampler is not None:
            raise AssertionError("rebatched_worker_size is decided by the batch_sampler: leave it out.")
        if worker_size is not None and combined is not None and worker_size > combined:
            raise AssertionError(
                f"rebatched_worker_size is {worker_size}. It must not be larger than the combined batch size, "
                f"{combined}."
            )
        return combined if combined is not None and combined > 1 else None
    if worker_size is not None:
        logger.warning("rebatched_worker_size has no effect with mode=%s and drop_last=%s.", mode, drop_last)
    return None
