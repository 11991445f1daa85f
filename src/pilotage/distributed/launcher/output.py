"""What instances say, line by line and with their numbers in front."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import IO

LAST_LINES = 20


class TaggedOutput:
    """Passes on whole lines of several instances as mpirun does: ``[1,RANK]<stdout>:line``."""

    def __init__(self, stdout: IO[bytes], stderr: IO[bytes], shows: Callable[[int], bool]) -> None:
        self._targets = {"stdout": stdout, "stderr": stderr}
        self._shows = shows
        self._lock = threading.Lock()
        self._last: dict[int, deque[str]] = {}

    def follow(self, rank: int, name: str, source: IO[bytes]) -> threading.Thread:
        """Read one stream of an instance to its end, beside everything else."""
        thread = threading.Thread(target=self._copy, args=(rank, name, source), daemon=True)
        thread.start()
        return thread

    def last_lines(self, rank: int) -> list[str]:
        """What an instance has said last."""
        with self._lock:
            return list(self._last.get(rank, ()))

    def _copy(self, rank: int, name: str, source: IO[bytes]) -> None:
        tag = f"[1,{rank}]<{name}>:".encode()
        with source:
            for line in source:
                self._pass_on(rank, name, tag, line if line.endswith(b"\n") else line + b"\n")

    def _pass_on(self, rank: int, name: str, tag: bytes, line: bytes) -> None:
        with self._lock:
            self._last.setdefault(rank, deque(maxlen=LAST_LINES)).append(line.decode(errors="replace").rstrip("\n"))
            if self._shows(rank):
                target = self._targets[name]
                target.write(tag + line)
                target.flush()
