"""What the caches hold, as values for the screen and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pilotage.cache.inventory import Item, take_inventory
from pilotage.cache.places import Place
from pilotage.cache.store import Store
from pilotage.errors import OptionError

__all__ = ["Surveyed", "survey"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Surveyed:
    """One cache directory and what lies in it."""

    place: Place
    store: Store | None = None
    items: tuple[Item, ...] = ()
    problem: str | None = None
    """Why nothing in the directory is used."""

    @property
    def size(self) -> int:
        """All bytes in it."""
        return sum(item.size for item in self.items)

    @property
    def is_wrong(self) -> bool:
        """Whether something should not be as it is."""
        return self.problem is not None or any(item.state.is_wrong for item in self.items)


def survey(places: Sequence[Place], *, verify: bool) -> list[Surveyed]:
    """Look at the caches; at every file where that is asked for."""
    return [_surveyed(place, verify=verify) for place in places]


def _surveyed(place: Place, *, verify: bool) -> Surveyed:
    try:
        store = place.store()
        items = () if store is None else tuple(take_inventory(store, verify=verify))
    except (OptionError, OSError) as error:
        return Surveyed(place=place, problem=str(error))
    # Like the names of files, the ones used last come first.
    return Surveyed(
        place=place, store=store, items=tuple(sorted(items, key=lambda item: (item.state.is_wrong, -item.used)))
    )
