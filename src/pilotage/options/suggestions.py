"""Finds the name that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence with the closest known name, to end an error message with; empty if none is close.

    Case and underscores do not count, nor does the part of a dotted name before its last dot.
    """
    spellings = {_spelling(each): each for each in sorted(known, reverse=True)}
    closest = difflib.get_close_matches(_spelling(name), spellings, n=1, cutoff=0.7)
    return f" Did you mean {spellings[closest[0]]}?" if closest else ""


def _spelling(name: str) -> str:
    return name.rpartition(".")[2].lower().replace("_", "")
