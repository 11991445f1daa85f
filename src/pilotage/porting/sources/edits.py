"""Edits of a text: planned against the original, applied at once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from pilotage.errors import PortingError

__all__ = ["Edit", "apply_edits"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """Replace a part of the original text."""

    start: int
    end: int
    """Equal to the start for an insertion."""

    text: str
    rule: str
    """The rule that asks for it."""


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits; an edit inside of a larger one is part of what the larger one replaces."""
    pieces: list[str] = []
    position = 0
    for edit in _outermost(edits):
        if edit.start < position:
            part = text[edit.start : edit.end].strip()
            raise PortingError(
                f"The rule {edit.rule!r} and another one edit the same text, {part!r}; please report this."
            )
        pieces += [text[position : edit.start], edit.text]
        position = edit.end
    return "".join([*pieces, text[position:]])


def _outermost(edits: Iterable[Edit]) -> list[Edit]:
    """The edits that are not inside of another one, in the order of the text; insertions come before replacements."""
    once = {(each.start, each.end, each.text): each for each in reversed(list(edits))}
    in_order = list(reversed(once.values()))
    replacements: list[Edit] = []
    for edit in sorted((each for each in in_order if each.end > each.start), key=lambda each: (each.start, -each.end)):
        outer = replacements[-1] if replacements else None
        if outer is None or edit.end > outer.end or (edit.start, edit.end) == (outer.start, outer.end):
            replacements.append(edit)
    starts = [each.start for each in replacements]
    kept = list(replacements)
    for edit in (each for each in in_order if each.end == each.start):
        before = bisect_left(starts, edit.start)
        if before == 0 or replacements[before - 1].end <= edit.start:
            kept.append(edit)
    return sorted(kept, key=lambda each: (each.start, each.end > each.start))
