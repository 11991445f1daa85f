"""Unified diffs of long files: matched at lines that occur once, so that repeated lines cost no time."""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

__all__ = ["unified_diff"]


class _Anchored(difflib.SequenceMatcher[str]):
    """Matches the lines that occur once in both texts first, then what lies between them."""

    def __init__(self, before: Sequence[str], after: Sequence[str]) -> None:
        super().__init__(None, before, after, autojunk=False)
        self._before = before
        self._after = after

    def get_matching_blocks(self) -> list[difflib.Match]:
        before, after = self._before, self._after
        found: list[tuple[int, int, int]] = []
        left = right = 0
        for anchor_left, anchor_right in [*_anchors(before, after), (len(before), len(after))]:
            between = difflib.SequenceMatcher(None, before[left:anchor_left], after[right:anchor_right], autojunk=False)
            found += [(left + i, right + j, size) for i, j, size in between.get_matching_blocks() if size]
            if anchor_left < len(before):
                found.append((anchor_left, anchor_right, 1))
            left, right = anchor_left + 1, anchor_right + 1
        return [*map(difflib.Match._make, _joined(found)), difflib.Match(len(before), len(after), 0)]


def unified_diff(before: Sequence[str], after: Sequence[str], path: str) -> Iterator[str]:
    """The lines of a unified diff with three lines around each change; nothing if the texts are the same."""
    groups = list(_Anchored(before, after).get_grouped_opcodes(3))
    if groups:
        yield from (f"--- {path}\n", f"+++ {path}\n")
    for group in groups:
        yield f"@@ -{_range(group[0][1], group[-1][2])} +{_range(group[0][3], group[-1][4])} @@\n"
        for kind, left, left_end, right, right_end in group:
            if kind == "equal":
                yield from (f" {line}" for line in before[left:left_end])
                continue
            yield from (f"-{line}" for line in before[left:left_end])
            yield from (f"+{line}" for line in after[right:right_end])


def _anchors(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """The longest series of lines that occur once in each text and in the same order in both."""
    once = {line for line, count in Counter(before).items() if count == 1}
    once &= {line for line, count in Counter(after).items() if count == 1}
    places = {line: number for number, line in enumerate(after) if line in once}
    pairs = [(number, places[line]) for number, line in enumerate(before) if line in once]
    ends: list[int] = []
    chains: list[int] = []
    last: list[int | None] = []
    for index, (_, right) in enumerate(pairs):
        place = bisect_left(ends, right)
        last.append(chains[place - 1] if place else None)
        ends[place : place + 1] = [right]
        chains[place : place + 1] = [index]
    found: list[tuple[int, int]] = []
    current = chains[-1] if chains else None
    while current is not None:
        found.append(pairs[current])
        current = last[current]
    return found[::-1]


def _joined(blocks: list[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """Neighbouring blocks as one."""
    waiting: tuple[int, int, int] | None = None
    for left, right, size in blocks:
        if waiting is not None and (waiting[0] + waiting[2], waiting[1] + waiting[2]) == (left, right):
            waiting = (waiting[0], waiting[1], waiting[2] + size)
            continue
        if waiting is not None:
            yield waiting
        waiting = (left, right, size)
    if waiting is not None:
        yield waiting


def _range(start: int, end: int) -> str:
    """A range of lines as diffs write it."""
    length = end - start
    beginning = start + 1 if length else start
    return str(beginning) if length == 1 else f"{beginning},{length}"
