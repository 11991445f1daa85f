"""Limits on the size and age of a cache."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from pilotage.cache.inventory import Item, State, take_inventory
from pilotage.cache.store import Store
from pilotage.options import environment


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """The limits of one cache directory."""

    size: int | None
    """Bytes; None for no limit."""

    age: float | None
    """Seconds since the last use of an entry; None for no limit."""

    @classmethod
    def from_environment(cls) -> Self:
        """Read PILOTAGE_CACHE_SIZE and PILOTAGE_CACHE_AGE."""
        return cls(size=environment.cache_size(), age=environment.cache_age())

    def surplus(self, items: Iterable[Item], *, now: float, keep: str | None = None) -> list[Item]:
        """The items to remove: those that are too old, then the least recently used; never the entry to keep."""
        entries = sorted((item for item in items if _counts(item)), key=lambda item: item.used)
        total = sum(item.size for item in entries)
        surplus: list[Item] = []
        for item in entries:
            is_old = self.age is not None and now - item.used > self.age
            is_too_much = self.size is not None and total > self.size
            if (is_old or is_too_much) and item.name != keep and item.state is not State.IN_USE:
                surplus.append(item)
                total -= item.size
        return surplus


def tidy(store: Store, limits: Limits, *, keep: str | None = None) -> None:
    """Remove abandoned leftovers, and entries beyond the limits."""
    store.sweep()
    now = time.time()
    for item in limits.surplus(take_inventory(store), now=now, keep=keep):
        store.remove(item.name)
    remove_old_thread_counts(store, limits, now)


def remove_old_thread_counts(store: Store, limits: Limits, now: float) -> None:
    """Remove old thread counts of programs that are not in the cache."""
    for name, path in store.thread_counts():
        try:
            is_old = limits.age is not None and now - path.lstat().st_mtime > limits.age
            if is_old and not store.folder(name).exists():
                path.unlink()
        except OSError:
            continue


def _counts(item: Item) -> bool:
    # A folder without a readable manifest may not be ours, if the directory is not used by Pilotage only.
    return item.state in (State.READY, State.IN_USE, State.OUTDATED)
