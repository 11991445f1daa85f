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

_DUE_SECONDS = 0.2
"""How long events may wait."""


class RecordFile:
    """Writes events of this process; nothing is created before the first one."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._file: int | None = None
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
            if self._file is None:
                path = self._folder / f"{os.getpid()}.jsonl"
                self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            os.write(self._file, text.encode())
        except OSError:
            # The proof was given up and its folder is gone: the script must not notice.
            self._file = None
        self.due = time.perf_counter() + _DUE_SECONDS

    def forget_parent(self) -> None:
        """In a forked process: leave the parent's file and what it had to write."""
        self._file, self._waiting = None, []
