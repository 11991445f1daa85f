"""Select entries to remove, and remove them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pilotage.cache.inventory import Item, State
from pilotage.cache.limits import Limits, remove_old_thread_counts
from pilotage.cache.locks import remove_abandoned
from pilotage.cache.sealed import MANIFEST
from pilotage.cache.store import Store, size_of
from pilotage.cli.cache.contents import CacheContents
from pilotage.errors import OptionError

__all__ = ["Removal", "Selection", "clear", "select"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """Which entries the user asked to remove."""

    names: tuple[str, ...] = ()
    everything: bool = False
    older_than: float | None = None

    def __post_init__(self) -> None:
        if self.names and (self.everything or self.older_than is not None):
            raise OptionError("Name entries, or select them with --all or --older-than, but not both.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Removal:
    """The result of removing one item."""

    item: Item
    freed: int
    """Bytes."""

    is_gone: bool


def select(caches: Sequence[CacheContents], selection: Selection, limits: Limits, now: float) -> list[Item]:
    """The items to remove."""
    if selection.names:
        everything = [item for cache in caches for item in cache.items]
        found = [_named(name, everything) for name in selection.names]
        return list({item.path: item for item in found}.values())
    if selection.older_than is not None:
        limits = replace(limits, age=min(selection.older_than, limits.age or selection.older_than))
    picked: list[Item] = []
    for cache in caches:
        surplus = {item.path for item in limits.surplus(cache.items, now=now)}
        picked += [
            item for item in cache.items if selection.everything or item.state.is_useless or item.path in surplus
        ]
    return [item for item in picked if item.state is not State.BUILDING and _is_ours(item)]


def clear(caches: Iterable[CacheContents], items: Sequence[Item], limits: Limits, now: float) -> list[Removal]:
    """Remove items, except those in use."""
    stores = {cache.store.root: cache.store for cache in caches if cache.store is not None}
    removals: list[Removal] = []
    for item in items:
        store = stores[item.path.parent]
        before = size_of(item.path)
        is_gone = _removed(store, item)
        removals.append(Removal(item=item, freed=before if is_gone else 0, is_gone=is_gone))
    for store in stores.values():
        remove_old_thread_counts(store, limits, now)
    return removals


def _removed(store: Store, item: Item) -> bool:
    match item.state:
        case State.LEFTOVER | State.BUILDING:
            return remove_abandoned(item.path)
        case State.DAMAGED | State.FOREIGN:
            # Programs that have loaded it keep working.
            return store.discard(item.path)
    return store.remove(item.name)


def _is_ours(item: Item) -> bool:
    """Whether Pilotage certainly wrote it; a folder without a manifest is removed only by name."""
    return item.state is not State.DAMAGED or os.path.lexists(item.path / MANIFEST)


def _named(name: str, items: Iterable[Item]) -> Item:
    matches = [item for item in items if item.name == name] or [item for item in items if item.name.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise OptionError(f"{name!r} matches {len(matches)} entries. Write more letters.")
    raise OptionError(f"No entry named {name!r}. `pilotage cache list` shows the names.")
