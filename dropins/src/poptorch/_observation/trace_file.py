"""Tracepoints in a file for Perfetto and chrome://tracing, if PVTI_OPTIONS asks for it."""

from __future__ import annotations

import functools
import json
import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["TraceFile", "trace_file"]


class TraceFile:
    """The tracepoints of one process; each is written when it ends, so a killed process leaves the earlier ones."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._process = os.getpid()
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        weakref.finalize(self, os.close, self._descriptor)
        # The format allows for the closing bracket to be missing.
        os.write(self._descriptor, b"[\n")

    @contextmanager
    def tracepoint(self, channel: str, name: str) -> Iterator[None]:
        """Record when the block began and how long it took."""
        start = time.perf_counter_ns()
        try:
            yield
        finally:
            duration = time.perf_counter_ns() - start
            self._write({"name": name, "cat": channel, "ph": "X", "ts": start / 1000, "dur": duration / 1000})

    def count(self, graph: str, label: str, value: float) -> None:
        """Record the present value of one line of a graph."""
        moment = time.perf_counter_ns() / 1000
        self._write({"name": graph, "ph": "C", "ts": moment, "args": {label: value}})

    def _write(self, event: dict[str, Any]) -> None:
        event = {**event, "pid": self._process, "tid": threading.get_ident()}
        os.write(self._descriptor, f"{json.dumps(event)},\n".encode())


def trace_file() -> TraceFile | None:
    """The file for this process's tracepoints; None if PVTI_OPTIONS is not set."""
    text = os.environ.get("PVTI_OPTIONS")
    # A forked process writes its own file.
    return None if not text else _opened(text, os.getpid())


@functools.lru_cache(maxsize=4)
def _opened(text: str, process: int) -> TraceFile | None:
    asked = _asked(text)
    if str(asked.get("enable", "true")).lower() != "true":
        return None
    name = Path(str(asked.get("fileName", "poptorch"))).stem
    return TraceFile(Path(str(asked.get("directory", "."))) / f"{name}_{process}.json")


def _asked(text: str) -> dict[str, Any]:
    try:
        asked = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"The environment variable PVTI_OPTIONS is not JSON: {error}. Write {{'enable': 'true'}} with double "
            "quotes."
        ) from error
    return asked if isinstance(asked, dict) else {}
