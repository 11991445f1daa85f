"""Messages between the consumer of a ring and the fetcher that fills it."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from pilotage.data.ring import Layout
from pilotage.program.structure import Structure


class Ready(NamedTuple):
    """From the fetcher: the first item is ready; the ring's descriptor follows."""

    layout: Layout
    structure: Structure
    first_rows: int
    """Rows of the first item before rebatching."""


class Item(NamedTuple):
    """From the fetcher: a chunk is filled."""

    epoch: int
    chunk: int
    rows: tuple[int, ...]


class EpochEnd(NamedTuple):
    """From the fetcher: the iterable is exhausted."""

    epoch: int


class Failed(NamedTuple):
    """From the fetcher, its last message: what went wrong."""

    report: str


class Release(NamedTuple):
    """From the consumer: the oldest filled chunk may be overwritten."""


class Advance(NamedTuple):
    """From the consumer: items of earlier epochs are no longer wanted, and their chunks are free."""

    epoch: int


class Stop(NamedTuple):
    """From the consumer: stop."""


FromFetcher: TypeAlias = Ready | Item | EpochEnd | Failed
FromConsumer: TypeAlias = Release | Advance | Stop
