"""Lines of the user's code in the document."""

from __future__ import annotations

import linecache

from pilotage.prediction.document import Source

__all__ = ["source_of"]


def source_of(line: str | None) -> Source | None:
    """A place ``file:number`` with the text of the line."""
    if line is None:
        return None
    file, _, number = line.rpartition(":")
    if not number.isdigit():
        return None
    return Source(file=file, line=int(number), text=linecache.getline(file, int(number)).strip())
