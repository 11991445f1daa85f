"""The background process that reads an iterable and fills a ring with its items."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, count
from multiprocessing.connection import Connection
from multiprocessing.reduction import send_handle
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from pilotage.data.channel import Channel
from pilotage.data.empty_loader import empty_loader_error
from pilotage.data.items import flatten_item
from pilotage.data.messages import Advance, EpochEnd, Failed, FromConsumer, Item, Ready, Release, Stop
from pilotage.data.random_state import RandomState
from pilotage.data.rebatch import rebatched
from pilotage.data.ring import Layout, Ring, anonymous_file
from pilotage.data.sharing_mode import by_value
from pilotage.errors import InputError, PilotageError
from pilotage.program.structure import Parsers, Structure
from pilotage.torch_private import LOADER_ITERATOR, shut_down_workers

_PARENT_CHECK_SECONDS = 2.0
_GRACE_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class FetchTask:
    """What a fetcher has to do, and how."""

    iterable: Iterable[Any]
    parsers: Parsers
    chunks: int
    ring_on_disk: bool
    load_indefinitely: bool
    """Whether to start the next epoch before it is requested."""
    early_preload: bool
    """Whether to fill the ring before the first epoch is requested."""
    rebatched_size: int | None
    drop_last: bool
    random_state: RandomState
    start_method: str | None
    """The default start method of the consumer's process."""


class _Stopped(Exception):
    """The consumer asked to stop."""


def run_fetcher(connection: Connection, task: FetchTask, other_end: Connection | None) -> None:
    """Run the fetcher; the target of its process."""
    if other_end is not None:
        other_end.close()
    _set_up_process()
    task.random_state.restore()
    # Otherwise a loader's workers would be started by the method that started this process.
    multiprocessing.set_start_method(task.start_method, force=True)
    try:
        _Fetcher(Channel(connection), task).run()
    except (_Stopped, EOFError, ConnectionError):
        pass
    except Exception:
        with contextlib.suppress(OSError):
            connection.send(Failed(traceback.format_exc()))
    finally:
        connection.close()
        _end_workers(task.iterable)


def _end_workers(iterable: Iterable[Any]) -> None:
    """Shut down a loader's workers: if killed in the middle of a batch, they leave shared memory behind."""
    workers = getattr(iterable, LOADER_ITERATOR, None) if isinstance(iterable, DataLoader) else None
    if workers is not None:
        shut_down_workers(workers)


def _set_up_process() -> None:
    # Ctrl-C reaches the whole process group; the consumer handles it and stops this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()


def _leave(signal_number: int, _frame: object) -> NoReturn:
    sys.exit(128 + signal_number)


def _end_with_parent(parent_id: int) -> None:
    """End this process when the consumer ends in any way, even while the iterable blocks."""
    parent = multiprocessing.parent_process()
    while parent is not None and parent.is_alive() and os.getppid() == parent_id:
        parent.join(_PARENT_CHECK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(_GRACE_SECONDS)
    for child in multiprocessing.active_children():
        child.kill()
    os._exit(1)


class _Fetcher:
    """Reads epochs and keeps track of which chunks are taken."""

    def __init__(self, channel: Channel[FromConsumer], task: FetchTask) -> None:
        self._channel = channel
        self._task = task
        self._wanted_epoch = 0 if task.early_preload else -1
        self._taken: deque[int] = deque()
        """The epochs of the filled chunks, oldest first."""
        self._next_chunk = 0
        self._structure: Structure | None = None
        self._first_rows = 0
        self._rows = 0
        """Rows read so far."""

    def run(self) -> None:
        """Load until asked to stop."""
        items = self._items()
        first = next(items, None)
        if first is None or self._structure is None:
            raise self._empty_error()
        ring = self._announce(first, self._structure)
        self._wait_until_wanted(0)
        self._load(0, chain([first], items), ring)
        del first, items
        for epoch in count(1):
            self._wait_until_wanted(epoch)
            self._load(epoch, self._items(), ring)

    def _empty_error(self) -> PilotageError:
        if self._rows == 0 or self._task.rebatched_size is None:
            return InputError("The dataset is empty: it has to yield at least one item.")
        return empty_loader_error(items=self._rows, own_items=None, combined=self._task.rebatched_size)

    def _items(self) -> Iterator[list[Tensor]]:
        """One epoch of items, flattened and rebatched."""
        flat = (self._tensors_of(item) for item in self._task.iterable)
        if self._task.rebatched_size is None:
            return flat
        return rebatched(flat, self._task.rebatched_size, drop_last=self._task.drop_last)

    def _tensors_of(self, item: Any) -> list[Tensor]:
        tensors, structure = flatten_item(item, self._task.parsers)
        if self._structure is None:
            self._structure = structure
            self._first_rows = tensors[0].shape[0] if tensors[0].ndim else 1
        elif structure != self._structure:
            raise InputError(f"Items must be alike, but {structure} came after {self._structure}.")
        self._rows += tensors[0].shape[0] if tensors[0].ndim else 1
        return tensors

    def _announce(self, first: list[Tensor], structure: Structure) -> Ring:
        layout = Layout.like(first, self._task.rebatched_size)
        descriptor = anonymous_file(layout.bytes * self._task.chunks, on_disk=self._task.ring_on_disk)
        try:
            ring = Ring(descriptor, layout, self._task.chunks)
            self._channel.send(Ready(layout, by_value(structure), self._first_rows))
            send_handle(self._channel.connection, descriptor, os.getppid())
        finally:
            os.close(descriptor)
        return ring

    def _load(self, epoch: int, items: Iterator[list[Tensor]], ring: Ring) -> None:
        for tensors in items:
            if not self._has_room_for(epoch):
                return
            rows = ring.write(self._next_chunk, tensors)
            self._channel.send(Item(epoch, self._next_chunk, rows))
            self._taken.append(epoch)
            self._next_chunk = (self._next_chunk + 1) % self._task.chunks
        self._channel.send(EpochEnd(epoch))

    def _has_room_for(self, epoch: int) -> bool:
        """Wait for a free chunk; False if the epoch is no longer wanted."""
        while self._channel.has_message() or len(self._taken) == self._task.chunks:
            self._handle_message()
        return epoch >= self._wanted_epoch

    def _wait_until_wanted(self, epoch: int) -> None:
        while self._channel.has_message() or not self._may_load(epoch):
            self._handle_message()

    def _may_load(self, epoch: int) -> bool:
        ahead = self._task.load_indefinitely and self._wanted_epoch >= 0
        return epoch <= self._wanted_epoch + ahead

    def _handle_message(self) -> None:
        message = self._channel.receive()
        if isinstance(message, Release):
            self._taken.popleft()
        elif isinstance(message, Advance):
            self._wanted_epoch = message.epoch
            while self._taken and self._taken[0] < message.epoch:
                self._taken.popleft()
        elif isinstance(message, Stop):
            raise _Stopped
