"""An endless sequence of batches, prepared by threads in advance."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from cosmictagger.data.array_pool import ArrayPool
from cosmictagger.data.detector import PLANES
from cosmictagger.data.downsampling import check_downsample
from cosmictagger.data.events import AnyBatch, Array, Batch, SparseBatch
from cosmictagger.data.larcv.event_file import check_minibatch
from cosmictagger.data.orders import ORDERS, entries_of
from cosmictagger.data.padding import padded
from cosmictagger.data.truth_arrays import truths_of
from cosmictagger.errors import DataError

DATA_FORMATS = ("channels_first", "channels_last")
_MIN_THREADS, _MAX_THREADS = 2, 6


class Source(Protocol):
    """A source of events."""

    def __len__(self) -> int: ...

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of a full image."""

    def batch(self, entries: Sequence[int] | Array, downsample: int = 0) -> SparseBatch:
        """Events as filled pixels."""

    def dense_batch(self, entries: Sequence[int] | Array, downsample: int = 0) -> Batch:
        """Events as images."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchForm:
    """What the batches of a loader look like."""

    downsample: int
    sparse: bool
    """Only filled pixels instead of whole images."""

    logarithmic: bool
    channels_last: bool
    truths: bool
    """With the simulation's truth."""

    pixels: int | None
    """How many pixels an event of a sparse batch has; None if each has its own number."""

    def read(self, source: Source, entries: Array, arrays: ArrayPool) -> AnyBatch:
        """Read a batch of a source in this form."""
        batch = self._filled(source, entries) if self.sparse else self._dense(source, entries)
        if self.truths:
            batch = replace(batch, truths=truths_of(source, batch, self.downsample))  # type: ignore[arg-type]
        if self.pixels is None or isinstance(batch, Batch):
            return batch
        return padded(batch, self.pixels, arrays.zeros)

    def _filled(self, source: Source, entries: Array) -> SparseBatch:
        filled = source.batch(entries, self.downsample)
        if self.logarithmic:
            np.log1p(filled.charge, out=filled.charge)
        return filled

    def _dense(self, source: Source, entries: Array) -> Batch:
        batch = source.dense_batch(entries, self.downsample)
        if self.logarithmic:
            np.log1p(batch.image, out=batch.image)
        return batch.channels_last() if self.channels_last else batch


class Loader:
    """Batches of one source in one order; ``state`` and ``restore`` continue the same sequence.

    The minibatch is that of all processes: rank ``rank`` of ``size`` gets an equal share of it. ``workers`` threads
    keep ``prefetch`` batches ready; both default to the number of cores. A seed of 0 is taken from the clock. With
    ``truths``, batches include the simulation's truth. With ``pixels``, sparse batches have this many pixels per event.

    Large because it holds the source, the position in it, and the threads that read ahead.
    """

    def __init__(
        self,
        source: Source,
        *,
        minibatch_size: int,
        downsample: int = 1,
        order: str = "random_blocks",
        seed: int = 0,
        sparse: bool = False,
        img_transform: bool = False,
        data_format: str = "channels_first",
        workers: int | None = None,
        prefetch: int | None = None,
        rank: int = 0,
        size: int = 1,
        truths: bool = False,
        pixels: int | None = None,
    ) -> None:
        check_minibatch(getattr(source, "path", type(source).__name__), len(source), minibatch_size)
        check_downsample(downsample, source.shape)
        _check_choice("order of entries", order, tuple(ORDERS))
        _check_choice("data format", data_format, DATA_FORMATS)
        _check_share(minibatch_size, rank, size)
        if sparse and data_format != "channels_first":
            raise DataError("Sparse batches are channels first; scatter them before you move the axes.")
        workers = workers if workers is not None else _cores_to_use()
        prefetch = prefetch if prefetch is not None else workers
        if workers < 1 or prefetch < 1:
            raise DataError(f"workers={workers} and prefetch={prefetch} must both be at least 1.")
        self._source, self._order, self._minibatch_size, self._prefetch = source, order, minibatch_size, prefetch
        share = minibatch_size // size
        self._own = slice(rank * share, (rank + 1) * share)
        """This process's part of a minibatch."""
        self.form = BatchForm(
            downsample=downsample,
            sparse=sparse,
            logarithmic=img_transform,
            channels_last=data_format == "channels_last",
            truths=truths,
            pixels=pixels,
        )
        # Waiting batches, batches in preparation, and two that the device and its loader still hold.
        self._arrays = ArrayPool(prefetch + workers + 2)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="reading")
        self._pending: deque[Future[AnyBatch]] = deque()
        self._batches, self._first = 0, 0
        self.joined = 1
        self.seed = seed or _seed_from_clock()

    def __iter__(self) -> Iterator[AnyBatch]:
        return self

    def __next__(self) -> AnyBatch:
        while len(self._pending) <= self._prefetch:
            self._pending.append(self._threads.submit(self._prepare, self._batches + len(self._pending)))
        batch = self._pending.popleft().result()
        self._batches += 1
        return batch

    def __enter__(self) -> Loader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def events(self) -> int:
        """Events of the source: an epoch."""
        return len(self._source)

    @property
    def minibatch_size(self) -> int:
        """Events of a batch, over all processes."""
        return self._minibatch_size

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Events, planes, rows and columns of this process's dense batch."""
        height, width = (side >> self.form.downsample for side in self._source.shape)
        return self._own.stop - self._own.start, PLANES, height, width

    def state(self) -> dict[str, int | str]:
        """The position in the sequence, as plain values; prefetched batches do not count."""
        epoch, position = divmod(self._batches * self._minibatch_size, self.events)
        first = {"first": self._first} if self._first else {}
        numbers = {"seed": self.seed, "batches": self._batches, "epoch": epoch, "position": position}
        return self._identity() | numbers | first

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a saved position; with ``first``, batches in serial order begin at that entry."""
        for name, value in self._identity().items():
            if state.get(name) != value:
                raise DataError(
                    f"The saved position in the data had {name}={state.get(name)!r}, this run has {value!r}: the "
                    "sequence cannot continue. Use the earlier setting, or start with another run.id."
                )
        self._discard_pending()
        self._batches, self.seed = int(state["batches"]), int(state["seed"])
        self._first = int(state.get("first", 0))

    def close(self) -> None:
        """Stop the threads, after waiting for batches in preparation."""
        self._discard_pending()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _identity(self) -> dict[str, int | str]:
        return {"order": self._order, "events": self.events, "minibatch_size": self._minibatch_size}

    def _discard_pending(self) -> None:
        for future in self._pending:
            future.cancel()
        self._pending.clear()

    def _prepare(self, number: int) -> AnyBatch:
        every = entries_of(self._order, number, events=self.events, minibatch_size=self._minibatch_size, seed=self.seed)
        entries = (every[self._own] + self._first) % self.events
        return self.form.read(self._source, entries, self._arrays)


def _check_choice(what: str, given: str, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        raise DataError(f"No {what} named {given!r}. Choose one of: {', '.join(allowed)}.")


def _check_share(minibatch_size: int, rank: int, size: int) -> None:
    if minibatch_size % size or not 0 <= rank < size:
        raise DataError(
            f"run.minibatch_size={minibatch_size} cannot be divided equally among {size} processes (this is number "
            f"{rank}): choose a multiple of {size}."
        )


def _cores_to_use() -> int:
    return min(_MAX_THREADS, max(_MIN_THREADS, len(os.sched_getaffinity(0))))


def _seed_from_clock() -> int:
    return time.time_ns() % (2**63 - 1) + 1
