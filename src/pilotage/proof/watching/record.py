"""The record of one process: a file of JSON lines that can be read up to the last one, however the process ends."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

__all__ = ["RecordFile"]


_ENCODER = json.JSONEncoder(default=str, check_circular=False, separators=(",", ":"))
"""Kept, since `json.dumps` makes a new one at each call; events contain nothing circular."""

_DUE_SECONDS = 0.5
"""How long events may wait."""


class RecordFile:
    """Writes events of this process; nothing is created before the first one."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._file: int | None = None
        self._mark: tuple[int, int] | None = None
        """The device and the inode of the file."""
        self._waiting: list[str] = []
        self.due = time.perf_counter() + _DUE_SECONDS
        """When waiting events should be written."""

    def add(self, event: str, /, **fields: Any) -> None:
        """Write an event at once."""
        self.wait(event, **fields)
        self.flush()

    def wait(self, event: str, /, **fields: Any) -> None:
        """Write an event together with the next ones."""
        self._waiting.append(_ENCODER.encode({"event": event, **fields}))

    def flush(self) -> None:
        """Write what waits, in one piece."""
        if not self._waiting:
            return
        text, self._waiting = "\n".join(self._waiting) + "\n", []
        try:
            os.write(self._opened(), text.encode())
        except OSError:
            # The proof was given up and its folder is gone: the script must not notice.
            self._file = None
        self.due = time.perf_counter() + _DUE_SECONDS

    def _opened(self) -> int:
        """The file of this process; a script may have closed it, and may have a file of its own at its number."""
        if self._file is not None:
            try:
                if _mark_of(self._file) == self._mark:
                    return self._file
            except OSError:
                pass
        path = self._folder / f"{os.getpid()}.jsonl"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._mark = _mark_of(self._file)
        return self._file

    def forget_parent(self) -> None:
        """In a forked process: leave the parent's file and what it had to write."""
        self._file, self._waiting = None, []


def _mark_of(file: int) -> tuple[int, int]:
    found = os.fstat(file)
    return found.st_dev, found.st_ino
