"""How many threads of the processor a program gets, found by trying."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
from collections.abc import Iterator
from pathlib import Path

import torch

_ROUNDS = 5
"""Calls that each number of threads is tried for."""

_WORTH_IT = 0.95
"""Fewer threads than torch would take have to need less than this share of its time."""


class ThreadTuner:
    """Tries numbers of threads on the first calls, which are real work, and stays with the fastest.

    More threads are not always faster: small operations wait for each other, and a core that somebody else uses holds
    all of them up. What was found on a quiet machine is kept in a file, so that the next run takes it from the start.
    """

    def __init__(self, available: int, kept: Path | None = None) -> None:
        self._kept = kept
        self._candidates = sorted({1, (available + 1) // 2, available}, reverse=True)
        self._seconds: dict[int, list[float]] = {count: [] for count in self._candidates}
        self._calls = 0
        self.chosen = self._read() if len(self._candidates) > 1 else available
        """The number to stay with; None while it is looked for."""

    @property
    def present(self) -> int:
        """The number for the next call."""
        return self.chosen or self._candidates[max(self._calls - 1, 0) % len(self._candidates)]

    def note(self, seconds: float) -> None:
        """Told how long a call took."""
        if self.chosen is not None:
            return
        if self._calls > 0:
            # The first call pays for everything that happens once.
            self._seconds[self.present].append(seconds)
        self._calls += 1
        if self._calls > _ROUNDS * len(self._candidates):
            self._settle()

    def _settle(self) -> None:
        medians = {count: statistics.median(seconds) for count, seconds in self._seconds.items()}
        most = self._candidates[0]
        fastest = min(medians, key=medians.__getitem__)
        self.chosen = fastest if medians[fastest] < _WORTH_IT * medians[most] else most
        # What is found while others use the cores says nothing about the next run.
        if self._kept is not None and os.getloadavg()[0] <= most + 0.5:
            found = {"available": most, "threads": self.chosen, "seconds": medians}
            temporary = self._kept.with_suffix(f".{os.getpid()}")
            # A cache that cannot be written to costs the next run a few calls, and nothing else.
            with contextlib.suppress(OSError):
                temporary.write_text(json.dumps(found))
                temporary.replace(self._kept)

    def _read(self) -> int | None:
        if self._kept is None:
            return None
        try:
            found = json.loads(self._kept.read_text())
            fits = found["available"] == self._candidates[0] and found["threads"] in self._candidates
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return int(found["threads"]) if fits else None


@contextlib.contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Let torch compute in so many threads for a while."""
    before = torch.get_num_threads()
    if before == count:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
