"""The contents of the caches as values, for the screen and for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pilotage.cache.directories import CacheDirectory
from pilotage.cache.inventory import Item, take_inventory
from pilotage.cache.store import Store
from pilotage.errors import OptionError

__all__ = ["CacheContents", "read_contents"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheContents:
    """A cache directory and its items."""

    directory: CacheDirectory
    store: Store | None = None
    items: tuple[Item, ...] = ()
    problem: str | None = None
    """Why the directory cannot be used."""

    @property
    def size(self) -> int:
        """Bytes of all items."""
        return sum(item.size for item in self.items)

    @property
    def is_wrong(self) -> bool:
        """Whether the directory or any item has a problem."""
        return self.problem is not None or any(item.state.is_wrong for item in self.items)


def read_contents(directories: Sequence[CacheDirectory], *, verify: bool) -> list[CacheContents]:
    """Read the cache directories; ``verify`` also compares every file with its digest."""
    return [_contents(directory, verify=verify) for directory in directories]


def _contents(directory: CacheDirectory, *, verify: bool) -> CacheContents:
    try:
        store = directory.store()
        items = () if store is None else tuple(take_inventory(store, verify=verify))
    except (OptionError, OSError) as error:
        return CacheContents(directory=directory, problem=str(error))
    # Good ones first, the most recently used first.
    return CacheContents(
        directory=directory, store=store, items=tuple(sorted(items, key=lambda item: (item.state.is_wrong, -item.used)))
    )
