"""What processes say, line by line and with the numbers of their instances in front."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import IO

LAST_LINES = 20


class TaggedOutput:
    """Passes on whole lines of several processes as mpirun does: ``[1,RANK]<stdout>:line``."""

    def __init__(self, stdout: IO[bytes], stderr: IO[bytes], ranks: Sequence[int | None]) -> None:
        self._targets = {"stdout": stdout, "stderr": stderr}
        self._ranks = ranks
        """What stands in front of the lines of each process; those of a process without are kept, and not shown."""
        self._lock = threading.Lock()
        self._last: dict[int, deque[str]] = {}

    def follow(self, process: int, name: str, source: IO[bytes]) -> threading.Thread:
        """Read one stream of a process to its end, beside everything else."""
        thread = threading.Thread(target=self._copy, args=(process, name, source), daemon=True)
        thread.start()
        return thread

    def last_lines(self, process: int) -> list[str]:
        """What a process has said last."""
        with self._lock:
            return list(self._last.get(process, ()))

    def _copy(self, process: int, name: str, source: IO[bytes]) -> None:
        with source:
            for line in source:
                self._pass_on(process, name, line if line.endswith(b"\n") else line + b"\n")

    def _pass_on(self, process: int, name: str, line: bytes) -> None:
        rank = self._ranks[process]
        with self._lock:
            self._last.setdefault(process, deque(maxlen=LAST_LINES)).append(line.decode(errors="replace").rstrip("\n"))
            if rank is not None:
                target = self._targets[name]
                target.write(f"[1,{rank}]<{name}>:".encode() + line)
                target.flush()
