"""Finds the number of CPU threads for a program by trying."""

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
"""The number of calls for which each thread count is tried."""

_WORTH_IT = 0.95
"""Fewer threads than torch's default must take less than this fraction of its time."""

_WATCHED, _WINDOW = 16, 0.3
"""How many calls, and how many seconds, are compared with earlier ones."""

_MUCH_SLOWER = 1.6
"""If calls become slower or faster by this factor, the load of the machine has changed."""

_SHORTEST_WAIT, _FIRST_WAIT, _LONGEST_WAIT = 2.0, 5.0, 60.0
"""Seconds of work between two searches: if calls are slower; on a busy machine, doubled each time; the maximum."""


_LARGEST_NOTE = 2**16
"""The maximum size of the file with the results."""


class ThreadTuner:
    """Tries thread counts on real calls, and uses the fastest one.

    More threads are not always faster: small operations wait for each other, and a core that another program uses
    delays all of them. So it searches again when calls become much slower, and from time to time. Results from a quiet
    machine are saved for the next run.
    """

    def __init__(self, available: int, kept: Path | None = None) -> None:
        self._kept = kept
        self._candidates = sorted({1, (available + 1) // 2, available}, reverse=True)
        self._seconds: dict[int, list[float]] = {count: [] for count in self._candidates}
        self._calls = 0
        self.chosen = self._read() if len(self._candidates) > 1 else available
        """The chosen number; None during a search."""
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
            # The first call includes everything that happens only once.
            self._seconds[self.present].append(seconds)
        self._calls += 1
        if self._calls > _ROUNDS * len(self._candidates):
            self._choose()

    def forget_speed(self) -> None:
        """Measure again how long a call takes: the program runs other code from now on."""
        self._usual, self._recent, self._span = None, [], 0.0

    def _watch(self) -> None:
        """Search again if calls have become slower, and from time to time."""
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
        # Alternating calls differ from calls in a row: the next ones show the usual time.
        self.forget_speed()
        self._worked = 0.0
        # A result from a busy machine is not valid for the next run, nor when the machine is idle again.
        self._found_busy = self._found_busy + 1 if self._is_busy() else 0
        if not self._found_busy:
            self._keep(typical)

    def _wait(self) -> float:
        """Seconds of work until the next search."""
        return min(_FIRST_WAIT * 2 ** (self._found_busy - 1), _LONGEST_WAIT) if self._found_busy else _LONGEST_WAIT

    def _is_busy(self) -> bool:
        return os.getloadavg()[0] > self._candidates[0] + 0.5

    def _keep(self, seconds: dict[int, float]) -> None:
        if self._kept is None:
            return
        found = {"available": self._candidates[0], "threads": self.chosen, "seconds": seconds}
        # If the cache is not writable, the next run only has to search again.
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
    """The mean without the worst: a thread that loses its core delays a few calls a lot, which a median would hide."""
    return statistics.fmean(sorted(seconds)[:-1])


@contextlib.contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Set torch's number of threads within a block."""
    before = torch.get_num_threads()
    if before == count:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
