"""The scripts that are ported together, and what their names mean across files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pilotage.porting.sources.source import Source

__all__ = ["Project"]


class Project:
    """All scripts of one port."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = tuple(sources)
        self._by_path = {each.path.absolute(): each for each in sources}

    def at(self, path: Path) -> Source | None:
        """The script with this path, if it is one of them."""
        return self._by_path.get(path.absolute())
