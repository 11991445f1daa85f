"""How many threads of the processor a program gets, found by trying."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
from collections.abc import Iterator
from pathlib import Path

import torch

from pilotage.cache.private_files import read_private
from pilotage.errors import ProgramFileError
from pilotage.whole_files import write_whole

_ROUNDS = 8
"""Calls that each number of threads is tried for."""

_WORTH_IT = 0.95
"""Fewer threads than torch would take have to need less than this share of its time."""

_WATCHED, _WINDOW = 16, 0.3
"""How many calls, and seconds of them, are compared with those before."""

_MUCH_SLOWER = 1.6
"""Calls that are slower by this factor mean that somebody else uses the cores, or no longer does."""

_SHORTEST_WAIT, _FIRST_WAIT, _LONGEST_WAIT = 2.0, 5.0, 60.0
"""Seconds of work between two searches: if calls are slower; if the machine was busy, doubled each time; at most."""


_LARGEST_NOTE = 2**16
"""Bytes of the file that keeps what was found."""


class ThreadTuner:
    """Tries numbers of threads on calls that are real work, and stays with the fastest for as long as it is.

    More threads are not always faster: small operations wait for each other, and a core that somebody else uses holds
    all of them up. So it searches again when calls have become much slower, and from time to time. What was found on a
    quiet machine is kept in a file for the next run.
    """

    def __init__(self, available: int, kept: Path | None = None) -> None:
        self._kept = kept
        self._candidates = sorted({1, (available + 1) // 2, available}, reverse=True)
        self._seconds: dict[int, list[float]] = {count: [] for count in self._candidates}
        self._calls = 0
        self.chosen = self._read() if len(self._candidates) > 1 else available
        """The number to stay with; None while it is looked for."""
        self._usual: float | None = None
        self._recent: list[float] = []
        self._span = 0.0
        self._worked = 0.0
        self._found_busy = 0

    @property
    def present(self) -> int:
        """The number for the next call."""
        return self.chosen or self._candidates[max(self._calls - 1, 0) % len(self._candidates)]

    def note(self, seconds: float) -> None:
        """Note how long a call took."""
        if self.chosen is not None:
            self._recent.append(seconds)
            self._span += seconds
            if self._span > _WINDOW and len(self._recent) >= _WATCHED:
                self._watch()
            return
        if self._calls > 0:
            # The first call pays for everything that happens once.
            self._seconds[self.present].append(seconds)
        self._calls += 1
        if self._calls > _ROUNDS * len(self._candidates):
            self._choose()

    def forget_speed(self) -> None:
        """Measure again how long a call takes: the program runs in another way from now on."""
        self._usual, self._recent, self._span = None, [], 0.0

    def _watch(self) -> None:
        """Look again where calls have become slower, and after a while."""
        present = _typical(self._recent)
        self._worked += self._span
        self._recent, self._span = [], 0.0
        if self._usual is None:
            self._usual = present
        is_slower = present > _MUCH_SLOWER * self._usual and self._worked > _SHORTEST_WAIT
        if len(self._candidates) > 1 and (is_slower or self._worked > self._wait()):
            self.chosen, self._calls = None, 1
            self._seconds = {count: [] for count in self._candidates}

    def _choose(self) -> None:
        typical = {count: _typical(seconds) for count, seconds in self._seconds.items()}
        most = self._candidates[0]
        fastest = min(typical, key=typical.__getitem__)
        self.chosen = fastest if typical[fastest] < _WORTH_IT * typical[most] else most
        # Calls that take turns are not what calls in a row are: those that follow tell what is usual.
        self.forget_speed()
        self._worked = 0.0
        # What is found while others use the cores does not hold for the next run, nor for this one when they are gone.
        self._found_busy = self._found_busy + 1 if self._is_busy() else 0
        if not self._found_busy:
            self._keep(typical)

    def _wait(self) -> float:
        """Seconds of work until the next look."""
        return min(_FIRST_WAIT * 2 ** (self._found_busy - 1), _LONGEST_WAIT) if self._found_busy else _LONGEST_WAIT

    def _is_busy(self) -> bool:
        return os.getloadavg()[0] > self._candidates[0] + 0.5

    def _keep(self, seconds: dict[int, float]) -> None:
        if self._kept is None:
            return
        found = {"available": self._candidates[0], "threads": self.chosen, "seconds": seconds}
        # A cache that cannot be written to costs the next run a few calls, and nothing else.
        with contextlib.suppress(OSError):
            write_whole(self._kept, json.dumps(found).encode(), mode=0o600, durable=False)

    def _read(self) -> int | None:
        if self._kept is None or self._is_busy():
            return None
        try:
            found = json.loads(read_private(self._kept, _LARGEST_NOTE))
            fits = found["available"] == self._candidates[0] and found["threads"] in self._candidates
        except (OSError, ProgramFileError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return int(found["threads"]) if fits else None


def _typical(seconds: list[float]) -> float:
    """The mean without the worst: threads that lose a core delay a few calls for long, which a median would not see."""
    return statistics.fmean(sorted(seconds)[:-1])


@contextlib.contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Let torch compute in this many threads for a while."""
    before = torch.get_num_threads()
    if before == count:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
