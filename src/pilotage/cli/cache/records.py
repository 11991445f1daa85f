"""Caches and removals as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pilotage.cache.inventory import Item
from pilotage.cache.limits import Limits
from pilotage.cli.cache.clearing import Removal
from pilotage.cli.cache.contents import CacheContents

__all__ = ["as_json", "removals_as_json"]


def as_json(caches: Sequence[CacheContents], limits: Limits) -> str:
    """All directories with their items; times in seconds since 1970, sizes in bytes."""
    return _text(
        {
            "limits": {"size": limits.size, "age": limits.age},
            "directories": [
                {
                    "title": cache.directory.title,
                    "path": None if cache.directory.path is None else str(cache.directory.path),
                    "problem": cache.problem,
                    "size": cache.size,
                    "items": [_record(item) for item in cache.items],
                }
                for cache in caches
            ],
        }
    )


def removals_as_json(removals: Sequence[Removal], *, dry_run: bool) -> str:
    """The items that were removed, or would be."""
    return _text(
        {
            "dry_run": dry_run,
            "freed": sum(removal.freed for removal in removals),
            "items": [{**_record(removal.item), "removed": removal.is_gone and not dry_run} for removal in removals],
        }
    )


def _record(item: Item) -> dict[str, object]:
    return {
        "name": item.name,
        "path": str(item.path),
        "state": item.state.value,
        "detail": item.detail,
        "size": item.size,
        "created": item.created,
        "used": item.used,
        "about": dict(item.about),
        "parts": dict(item.parts),
    }


def _text(data: object) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False)
