"""The screen of `pilotage cache`: a table for each directory, and its problems."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from pilotage.cache.inventory import Item
from pilotage.cache.limits import Limits
from pilotage.cli.cache.contents import CacheContents
from pilotage.cli.formatting import format_age, format_size
from pilotage.cli.monitor.lines import Drawing, Line, draw
from pilotage.cli.monitor.table import Cell, Column, Table
from pilotage.monitoring.plurals import pluralized

__all__ = ["screen", "short"]

_SHORT = 12
"""Letters of a digest that are shown."""


def screen(
    caches: Sequence[CacheContents], limits: Limits, drawing: Drawing, width: int, *, now: float, verified: bool
) -> list[Line]:
    """All directories, line by line."""
    lines: list[Line] = []
    for cache in caches:
        lines += [*_directory(cache, limits, drawing, width, now=now), []]
    return [
        *lines,
        *_wrapped(_conclusion(caches, verified=verified), width, "title" if _is_wrong(caches) else "note"),
    ]


def short(item: Item) -> str:
    """The name, shortened but long enough to select the item."""
    return item.name[:_SHORT]


def _directory(cache: CacheContents, limits: Limits, drawing: Drawing, width: int, *, now: float) -> Iterator[Line]:
    directory = cache.directory
    if directory.path is None:
        yield [Cell(f"{directory.title}: ", "title"), Cell("none, PILOTAGE_CACHE_DIR is off", "note")]
        return
    yield [Cell(f"{directory.title}: ", "title"), Cell(str(directory.path))]
    if cache.problem is not None:
        yield from _wrapped(cache.problem, width, "foreign")
        return
    if not cache.items:
        yield [Cell("  empty", "note")]
        return
    limit = "" if limits.size is None else f" of at most {format_size(limits.size)}"
    heading = f"{pluralized(len(cache.items), 'item')}, {format_size(cache.size)}{limit}"
    yield from draw(_table(cache.items, heading, now).fitted(width), drawing)
    for item in cache.items:
        if item.detail:
            yield from _wrapped(f"{short(item)} is {item.state.value}: {item.detail}.", width, item.state.value)


def _table(items: Iterable[Item], heading: str, now: float) -> Table:
    rows = list(items)

    def column(title: str, cells: Iterable[str], rank: int, align: str = "<", least: int | None = None) -> Column:
        return Column(title, heading, tuple(map(Cell, cells)), rank, least, align)

    columns = [
        Column("Name", heading, tuple(Cell(short(item), "id") for item in rows), 100, None, "<"),
        column("Program", (item.about.get("name", "") for item in rows), 80, least=12),
        column("Kind", (item.about.get("kind", "") for item in rows), 50),
        column("Device", (item.parts.get("device", "") for item in rows), 40, least=10),
        column("torch", (item.parts.get("torch", "") for item in rows), 60),
        column("Size", (format_size(item.size) for item in rows), 90, ">"),
        column("Created", (_date(item.created) for item in rows), 30),
        column("Last used", (format_age(now - item.used) for item in rows), 70, ">"),
        Column("State", heading, tuple(Cell(item.state.value, item.state.value) for item in rows), 95, None, "<"),
    ]
    return Table(tuple(column for column in columns if any(cell.text for cell in column.cells)))


def _date(moment: float | None) -> str:
    return "" if moment is None else f"{datetime.fromtimestamp(moment):%Y-%m-%d %H:%M}"


def _is_wrong(caches: Iterable[CacheContents]) -> bool:
    return any(cache.is_wrong for cache in caches)


def _conclusion(caches: Sequence[CacheContents], *, verified: bool) -> str:
    if any(item.state.is_wrong for cache in caches for item in cache.items):
        return "Damaged and foreign entries are never executed. `pilotage cache clear` removes them, and leftovers."
    if _is_wrong(caches):
        return "Pilotage does not use such a directory."
    if verified:
        return "Every file matches its digest."
    return "`pilotage cache check` compares every file with its digest."


def _wrapped(text: str, width: int, style: str) -> list[Line]:
    lines = textwrap.wrap(text, max(40, width - 2), break_long_words=False, break_on_hyphens=False)
    return [[Cell(f"  {line}", style)] for line in lines]
