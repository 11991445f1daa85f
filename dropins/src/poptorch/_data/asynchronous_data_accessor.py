"""PopTorch's accessor, which loads data in a separate process."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Self

import torch
from torch import Tensor

from pilotage.engine import FetchError, FetchStartError, Loader, Prefetcher, SharingMode
from poptorch._args_parser import registered_parsers
from poptorch._errors import createPoptorchError
from poptorch._logging import logger
from poptorch.enums import SharingStrategy

__all__ = ["AsynchronousDataAccessor"]

_SHARING = {
    SharingStrategy.SharedMemory: SharingMode.SHARED_MEMORY,
    SharingStrategy.FileSystem: SharingMode.FILE_SYSTEM,
    SharingStrategy.Fork: SharingMode.FORK,
    SharingStrategy.ForkServer: SharingMode.FORK_SERVER,
}


class AsynchronousDataAccessor:
    """Iterates over any iterable, which a separate process reads ahead into a ring buffer.

    Items are views of the ring buffer: each is valid until the next one is requested; clone it to keep it.
    """

    _is_terminated = False

    def __init__(
        self,
        dataset: Iterable[Any],
        buffer_size: int = 3,
        miss_sleep_time_in_ms: float = 0.1,
        load_indefinitely: bool = True,
        early_preload: bool = False,
        sharing_strategy: SharingStrategy = SharingStrategy.ForkServer,
        rebatched_size: int | None = None,
    ) -> None:
        """Start the process and wait for its first item."""
        _check(dataset, sharing_strategy, rebatched_size)
        try:
            self._prefetcher = Prefetcher(
                dataset,
                buffer_size=buffer_size,
                miss_sleep_seconds=miss_sleep_time_in_ms / 1000,
                load_indefinitely=load_indefinitely,
                early_preload=early_preload,
                sharing_mode=_SHARING[sharing_strategy],
                rebatched_size=rebatched_size,
                drop_last=getattr(dataset, "rebatched_drop_last", None) is not False,
                parsers=registered_parsers(),
            )
        except FetchStartError as error:
            # The worker's own traceback, also for programs that catch the error.
            logger.error("%s", error)
            raise createPoptorchError(f"AsynchronousDataAccessor worker thread failed to start: {error}") from error

        logger.debug("AsynchronousDataAccessor worker process: %s", self._prefetcher.process_id)
        logger.debug("AsynchronousDataAccessor parent process: %s", os.getpid())

    @property
    def _worker(self) -> _Worker | None:
        """The process that loads, as programs look at it; None once it was terminated."""
        return None if self._is_terminated else _Worker(self._prefetcher)

    def __iter__(self) -> Self:
        try:
            iter(self._prefetcher)
        except FetchError as error:
            raise _failure(error) from error
        return self

    def __next__(self) -> Any:
        try:
            return next(self._prefetcher)
        except FetchError as error:
            raise _failure(error) from error

    def __len__(self) -> int:
        return len(self._prefetcher)

    def __del__(self) -> None:
        self.terminate()

    def terminate(self) -> None:
        """Stop the process that loads."""
        self._is_terminated = True
        if hasattr(self, "_prefetcher"):
            self._prefetcher.terminate()


class _Worker:
    """PopTorch's view of the process that loads."""

    def __init__(self, prefetcher: Prefetcher) -> None:
        self._data_buffers = _DataBuffers(prefetcher)


class _DataBuffers:
    """PopTorch's view of the ring buffer."""

    def __init__(self, prefetcher: Prefetcher) -> None:
        self._prefetcher = prefetcher

    @property
    def indices_mem(self) -> Tensor:
        """Which slots of the ring are filled."""
        return torch.arange(self._prefetcher.chunks) < self._prefetcher.ready_items


def _check(dataset: Iterable[Any], sharing_strategy: SharingStrategy, rebatched_size: int | None) -> None:
    if not isinstance(sharing_strategy, SharingStrategy):
        raise AssertionError(f"sharing_strategy must be a poptorch.SharingStrategy, not {sharing_strategy!r}.")
    if rebatched_size is not None and rebatched_size <= 1:
        raise AssertionError(f"rebatched_size is {rebatched_size}. It must be greater than 1, or None.")
    if not isinstance(dataset, Loader):
        return
    if not dataset.reads_here:
        raise createPoptorchError(
            "The DataLoader already uses an AsynchronousDataAccessor internally: iterate over it directly, "
            "or create it with mode=poptorch.DataLoaderMode.Sync."
        )
    combined = dataset.combined_batch_size or 1
    if not dataset.drops_incomplete and combined > 1 and rebatched_size is None:
        raise AssertionError(
            f"The DataLoader has drop_last=False and yields batches of {combined}, the last one possibly smaller: "
            "specify rebatched_size for the AsynchronousDataAccessor, or set drop_last=True."
        )


def _failure(error: FetchError) -> AssertionError:
    return AssertionError(f"An error occurred in the data fetcher: {error}")
