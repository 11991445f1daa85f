"""The output of processes, line by line and tagged with their rank."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import IO

KEPT_LINES = 20


class TaggedOutput:
    """Prints whole lines of several processes as mpirun does: ``[1,RANK]<stdout>:line``."""

    def __init__(self, stdout: IO[bytes], stderr: IO[bytes], ranks: Sequence[int | None]) -> None:
        self._targets = {"stdout": stdout, "stderr": stderr}
        self._ranks = ranks
        """The rank that tags the lines of each process; None hides them, but the last ones are kept."""
        self._lock = threading.Lock()
        self._last: dict[int, deque[str]] = {}

    def follow(self, process: int, name: str, source: IO[bytes]) -> threading.Thread:
        """Read one stream of a process to its end in a thread."""
        thread = threading.Thread(target=self._copy, args=(process, name, source), daemon=True)
        thread.start()
        return thread

    def last_lines(self, process: int) -> list[str]:
        """The last lines of a process."""
        with self._lock:
            return list(self._last.get(process, ()))

    def _copy(self, process: int, name: str, source: IO[bytes]) -> None:
        with source:
            for line in source:
                self._print(process, name, line if line.endswith(b"\n") else line + b"\n")

    def _print(self, process: int, name: str, line: bytes) -> None:
        rank = self._ranks[process]
        with self._lock:
            self._last.setdefault(process, deque(maxlen=KEPT_LINES)).append(line.decode(errors="replace").rstrip("\n"))
            if rank is not None:
                target = self._targets[name]
                target.write(f"[1,{rank}]<{name}>:".encode() + line)
                target.flush()
