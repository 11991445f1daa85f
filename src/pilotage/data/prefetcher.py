"""Prefetch items in a separate process."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import recv_handle
from multiprocessing.util import Finalize
from typing import Any, NoReturn, Self

from torch.utils.data import DataLoader, IterableDataset

from pilotage.data.channel import Channel
from pilotage.data.fetcher import FetchTask, run_fetcher
from pilotage.data.loader import Loader
from pilotage.data.messages import Advance, EpochEnd, Failed, FromFetcher, Item, Ready, Release, Stop
from pilotage.data.random_state import RandomState
from pilotage.data.ring import Ring
from pilotage.data.sharing_mode import SharingMode, start_process
from pilotage.errors import FetchError, FetchStartError, OptionError
from pilotage.program.structure import Parsers, Structure, unflatten

_GRACE_SECONDS = 1.0


@dataclass(slots=True)
class _Epoch:
    """Where the consumer is in an epoch."""

    number: int = -1
    is_at_start: bool = False
    is_finished: bool = False
    holds_item: bool = False
    """Whether the last item's chunk has to be released."""


class Prefetcher:
    """Iterates over an iterable that another process reads ahead.

    Items are views of a ring in shared memory: an item is valid until the next one is requested; clone it to keep it.
    ``iter()`` starts a new epoch, even in the middle of one. The other process starts with a copy of this process's
    random state, so that shuffling and augmentation draw the same numbers as they would here.

    Large because it has both ends of an epoch, what is left of it, and the life of the other process.
    """

    def __init__(
        self,
        iterable: Iterable[Any],
        *,
        buffer_size: int = 3,
        miss_sleep_seconds: float = 0.0,
        load_indefinitely: bool = True,
        early_preload: bool = False,
        sharing_mode: SharingMode = SharingMode.FORK_SERVER,
        rebatched_size: int | None = None,
        drop_last: bool = True,
        parsers: Parsers | None = None,
    ) -> None:
        """Start the process and wait for its first item.

        ``miss_sleep_seconds`` is how long to sleep when an item is not ready yet: fewer, longer pauses.
        ``rebatched_size`` cuts and joins items along their first dimension to that many rows each; ``drop_last`` drops
        the rows that remain at the end. ``parsers`` take objects of the user's own types apart.
        """
        _check(buffer_size, miss_sleep_seconds, rebatched_size)
        if isinstance(iterable, Loader):
            iterable.check_not_empty()
        self._iterable = iterable
        self._miss_sleep_seconds = miss_sleep_seconds
        self._rebatched_size = rebatched_size
        self._drop_last = drop_last
        self._failure: str | None = None
        self._epoch = _Epoch()
        self._received: deque[FromFetcher] = deque()
        self.chunks = buffer_size
        """How many items the ring holds."""
        task = FetchTask(
            iterable=iterable,
            parsers=parsers or {},
            chunks=buffer_size,
            ring_on_disk=sharing_mode.ring_on_disk,
            load_indefinitely=load_indefinitely,
            early_preload=early_preload,
            rebatched_size=rebatched_size,
            drop_last=drop_last,
            random_state=RandomState.current(),
            start_method=multiprocessing.get_start_method(allow_none=True),
        )
        self._process, connection = start_process(
            sharing_mode,
            run_fetcher,
            task,
            preload=[run_fetcher.__module__, type(iterable).__module__],
            name="pilotage-fetcher",
        )
        self._channel: Channel[FromFetcher] = Channel(connection, self._process.sentinel)
        # Runs when this object is deleted or the process exits, before multiprocessing waits for its children.
        self._stop = Finalize(self, _stop, args=(self._process, connection), exitpriority=10)
        self._structure, self._first_rows, self._ring = self._receive_first(buffer_size)

    def __iter__(self) -> Self:
        self._check_alive()
        if not self._epoch.is_at_start:
            self._epoch = _Epoch(self._epoch.number + 1, is_at_start=True)
            self._send(Advance(self._epoch.number))
        return self

    def __next__(self) -> Any:
        if self._epoch.number < 0:
            iter(self)
        if self._epoch.is_finished:
            raise StopIteration
        self._check_alive()
        self._epoch.is_at_start = False
        self._release()
        message = self._next_message()
        if isinstance(message, EpochEnd):
            self._epoch.is_finished = True
            raise StopIteration
        self._epoch.holds_item = True
        return unflatten(self._structure, self._ring.read(message.chunk, message.rows))

    def __len__(self) -> int:
        if self._rebatched_size is None:
            return len(self._iterable)  # type: ignore[arg-type]
        whole, rest = divmod(self._rows(), self._rebatched_size)
        return whole + (rest > 0 and not self._drop_last)

    @property
    def process_id(self) -> int | None:
        """The number of the process that reads."""
        return self._process.pid

    @property
    def ready_items(self) -> int:
        """How many items have been read and not been taken; the first one is read before the first epoch begins."""
        with contextlib.suppress(EOFError, ConnectionError):
            while self._failure is None and self._channel.has_message():
                self._received.append(self._channel.receive())
        waiting = [each for each in self._received if isinstance(each, Item) and each.epoch >= self._epoch.number]
        return max(len(waiting), self._epoch.number < 0)

    def terminate(self) -> None:
        """Stop the other process; the prefetcher cannot be used afterwards."""
        self._failure = self._failure or "The prefetcher was terminated. Create a new one to continue."
        self._stop()

    def _rows(self) -> int:
        if isinstance(self._iterable, DataLoader) and self._iterable.batch_size is not None:
            return _rows_of_an_epoch(self._iterable)
        return len(self._iterable) * self._first_rows  # type: ignore[arg-type]

    def _receive_first(self, chunks: int) -> tuple[Structure, int, Ring]:
        try:
            ready = self._receive()
            if not isinstance(ready, Ready):
                report = ready.report if isinstance(ready, Failed) else ready
                raise FetchStartError(f"Loading the first item failed.\n{report}")
            descriptor = recv_handle(self._channel.connection)
        except FetchError as error:
            self.terminate()
            raise FetchStartError(str(error)) from None
        except BaseException:
            self.terminate()
            raise
        try:
            return ready.structure, ready.first_rows, Ring(descriptor, ready.layout, chunks)
        finally:
            os.close(descriptor)

    def _next_message(self) -> Item | EpochEnd:
        """The next message of the current epoch; messages of abandoned epochs are skipped."""
        while True:
            message = self._receive()
            if isinstance(message, Failed):
                self._fail(f"Loading failed in the background process.\n{message.report}")
            elif isinstance(message, Item | EpochEnd) and message.epoch >= self._epoch.number:
                return message

    def _receive(self) -> FromFetcher:
        if self._received:
            return self._received.popleft()
        if not self._channel.has_message():
            if self._miss_sleep_seconds:
                time.sleep(self._miss_sleep_seconds)
            self._channel.wait()
        with contextlib.suppress(EOFError, ConnectionError):
            if self._channel.has_message():
                return self._channel.receive()
        return self._fail_on_exit()

    def _release(self) -> None:
        if self._epoch.holds_item:
            self._epoch.holds_item = False
            self._send(Release())

    def _send(self, message: Advance | Release) -> None:
        # A process that has ended may have left items and a failure report, which are still to be read.
        with contextlib.suppress(OSError):
            self._channel.send(message)

    def _check_alive(self) -> None:
        if self._failure is not None:
            raise FetchError(self._failure)

    def _fail_on_exit(self) -> NoReturn:
        self._process.join(_GRACE_SECONDS)
        self._fail(
            f"The process that loads data ended unexpectedly with exit code {self._process.exitcode}. "
            "A negative code is the signal that killed it: -9 often means that the system ran out of memory. "
            "A script that starts processes needs the guard `if __name__ == '__main__':`."
        )

    def _fail(self, reason: str) -> NoReturn:
        self._failure = reason
        self._stop()
        raise FetchError(reason)


def _stop(process: BaseProcess, connection: Connection) -> None:
    """Stop the process: ask it to, then terminate it, then kill it."""
    with contextlib.suppress(OSError):
        connection.send(Stop())
    connection.close()
    process.join(_GRACE_SECONDS)
    for force in (process.terminate, process.kill):
        if process.exitcode is None:
            force()
            process.join(_GRACE_SECONDS)
    process.join()
    process.close()


def _check(buffer_size: int, miss_sleep_seconds: float, rebatched_size: int | None) -> None:
    if buffer_size < 1:
        raise OptionError(f"buffer_size is {buffer_size}. It must be at least 1.")
    if miss_sleep_seconds < 0:
        raise OptionError(f"miss_sleep_seconds is {miss_sleep_seconds}. It must be at least 0.")
    if rebatched_size is not None and rebatched_size < 1:
        raise OptionError(f"rebatched_size is {rebatched_size}. It must be at least 1.")


def _rows_of_an_epoch(loader: DataLoader[Any]) -> int:
    if loader.drop_last:
        return len(loader) * (loader.batch_size or 1)
    if isinstance(loader.dataset, IterableDataset):
        return len(loader.dataset)  # type: ignore[arg-type]
    return len(loader.sampler)  # type: ignore[arg-type]
