"""What the consumer of a ring and the process that fills it say to each other."""

from __future__ import annotations

from typing import Any, NamedTuple

from pilotage.data.ring import Layout


class Ready(NamedTuple):
    """From the fetcher: the first item is there; the ring's descriptor follows."""

    layout: Layout
    structure: Any
    first_rows: int
    """Rows of the first item as it was read, before rebatching."""


class Item(NamedTuple):
    """From the fetcher: a slot is filled."""

    epoch: int
    slot: int
    rows: tuple[int, ...]


class EpochEnd(NamedTuple):
    """From the fetcher: the iterable is exhausted."""

    epoch: int


class Failed(NamedTuple):
    """From the fetcher, its last word: what went wrong."""

    report: str


class Release(NamedTuple):
    """From the consumer: the oldest filled slot may be written again."""


class Advance(NamedTuple):
    """From the consumer: items before this epoch are not wanted any more, and their slots are free."""

    epoch: int


class Stop(NamedTuple):
    """From the consumer: end."""
