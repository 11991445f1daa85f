"""How much compiled code is kept, and for how long."""

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
    """What one cache directory may hold."""

    size: int | None
    """Bytes; None for any."""

    age: float | None
    """Seconds since an entry was last used; None for any."""

    @classmethod
    def chosen(cls) -> Self:
        """What the user asks for: PILOTAGE_CACHE_SIZE and PILOTAGE_CACHE_AGE."""
        return cls(size=environment.cache_size(), age=environment.cache_age())

    def surplus(self, items: Iterable[Item], *, now: float, keep: str | None = None) -> list[Item]:
        """What has to go: what is too old, then what was not used for the longest time; never the entry to keep."""
        entries = sorted((item for item in items if _counts(item)), key=lambda item: item.used)
        total = sum(item.size for item in entries)
        gone: list[Item] = []
        for item in entries:
            is_old = self.age is not None and now - item.used > self.age
            is_too_much = self.size is not None and total > self.size
            if (is_old or is_too_much) and item.name != keep and item.state is not State.IN_USE:
                gone.append(item)
                total -= item.size
        return gone


def tidy(store: Store, limits: Limits, *, keep: str | None = None) -> None:
    """Remove leftovers that nobody works on, and what the limits leave no room for."""
    store.sweep()
    now = time.time()
    for item in limits.surplus(take_inventory(store), now=now, keep=keep):
        store.remove(item.name)
    remove_old_notes(store, limits, now)


def remove_old_notes(store: Store, limits: Limits, now: float) -> None:
    """Remove what was noted about programs that are not here, once it is old."""
    for name, path in store.notes():
        try:
            is_old = limits.age is not None and now - path.lstat().st_mtime > limits.age
            if is_old and not store.folder(name).exists():
                path.unlink()
        except OSError:
            continue


def _counts(item: Item) -> bool:
    # What has no readable manifest may be somebody else's, in a directory that is not ours alone.
    return item.state in (State.READY, State.IN_USE, State.OUTDATED)
